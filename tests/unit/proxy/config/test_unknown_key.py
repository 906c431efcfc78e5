from proxy.config.unknown_key import unknown


def test_near_miss_has_a_hint() -> None:
    assert str(unknown(("admin", "prot"), ["bind", "port"])) == "admin.prot: unknown key; did you mean port?"


def test_anything_else_is_told_what_there_is() -> None:
    message = str(unknown(("admin", "colour"), ["port", "bind"]))
    assert message == "admin.colour: unknown key; expected one of bind, port"
