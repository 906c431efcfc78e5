"""Made-up topic ids: the cluster is asked for a bounded number of them, and they delay only their sender."""

from uuid import UUID

from proxy.relay.budgets.id_budget import IDS_AT_MOST
from proxy.relay.requests.unnamed_topics import NAMES_SECONDS
from tests.support.stories.playbook import START
from tests.support.stories.unnamed_topics import COLD, IDS, UNKNOWN, Names, read, request, told


def made_up(number: int, first: int = 100) -> dict[UUID, list[int]]:
    return {UUID(int=first + each): [1] for each in range(number)}


def test_made_up_ids_are_asked_for_in_bounded_numbers() -> None:
    names = Names(COLD)
    play = told(names).client(request(1, made_up(10 * IDS_AT_MOST)))
    assert names.all_wanted
    assert len(names.take_wanted()) == IDS_AT_MOST
    known = request(1, {COLD: [10]})
    told(names).client(known).to_broker(known)
    names.learn()
    play.at(0.1).to_broker().to_client()
    play.at(NAMES_SECONDS)
    assert {each.partition_responses[0].error_code for each in read(play).responses} == {UNKNOWN}


def test_a_flood_of_made_up_ids_delays_only_its_sender() -> None:
    """The proxy may not describe the topic "secret", which only a request by its id tells."""
    names = Names()
    hostile = told(names).client(*[request(each, made_up(1000, first=each * 1000)) for each in range(1, 5)])
    names.secret_asked = False
    other = told(names).client(request(1, {"secret": [10]})).to_broker()
    assert IDS["secret"].bytes in names.take_wanted()
    names.secret_asked = True
    names.learn()
    other.at(0.1).to_broker(request(1, {"secret": [10]}))
    hostile.at(0.1).busy()


def test_the_names_of_all_topics_do_not_tell_that_an_id_is_unknown() -> None:
    names = Names()
    names.secret_asked = False
    play = told(names).client(request(1, {**made_up(IDS_AT_MOST), "secret": [10]}))
    wanted = names.take_wanted()
    names.learn()
    play.at(0.9).to_broker().to_client()
    names.ask_again()
    play.at(1.1)
    wanted |= names.take_wanted()
    assert IDS["secret"].bytes in wanted
    names.secret_asked = True
    names.learn()
    play.at(1.5).to_broker(request(1, {"secret": [10]}))


def test_a_request_of_very_many_made_up_ids_looks_for_them_a_few_times_only() -> None:
    names = Names()
    made_up = {UUID(int=number): [1] for number in range(100, 10_100)}
    asked = request(1, made_up)
    play = told(names).client(asked)
    looks = 0
    while play.relay.next_timer > 0.0:
        play.at(play.relay.next_timer - START)
        looks += 1
    assert looks <= 3
    assert len(read(play).responses) == len(made_up)
