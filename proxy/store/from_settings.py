"""The quotas of the configuration file: what the store and the quota engine take, built from the settings."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from dataclasses import replace as replaced
from functools import partial
from pathlib import Path

from msgspec.structs import replace

from proxy.config.client_entries import without_entries
from proxy.config.file_state import FileState, file_state
from proxy.config.load import load, located_in
from proxy.config.quotas import Quotas
from proxy.config.settings import Settings
from proxy.config.yaml.convert import unknown
from proxy.errors import SettingsError
from proxy.quota.config_rules import ConfigRules
from proxy.quota.identity import QuotaEntity
from proxy.quota.kinds.replication import kind as replication
from proxy.quota.limits.enforcement import (
    ENFORCE,
    OBSERVE,
    EnforcementModes,
    EnforcementSettings,
    Exemptions,
    RateAlgorithm,
    RateWindow,
)
from proxy.quota.limits.limit_source import LimitSource
from proxy.quota.limits.limits import Limits
from proxy.quota.limits.resources import Resources
from proxy.quota.limits.scopes import Scopes
from proxy.quota.networks import Networks
from proxy.quota.quota import QuotaKind
from proxy.quota_callback import load_callback
from proxy.store.quota_store import FileQuotas
from proxy.store.yaml_file import read_clients, read_scopes
from proxy.store.yaml_resources import read_resources


@dataclass(frozen=True, slots=True)
class Configuration:
    """The settings of a configuration file, and what is built from them, once."""

    settings: Settings
    rules: ConfigRules
    """The configs of topics and brokers that are the proxy's quotas."""
    quotas: FileQuotas
    file: FileState = None
    """The state of the file, from before it was read."""


def load_configuration(path: Path, kinds: Sequence[QuotaKind]) -> Configuration:
    """Read and check the file. Raises SettingsError with the file, the line and the key.

    Does not open the files that the configuration names.
    """
    state = file_state(path)
    settings = load(path)
    with located_in(path):
        return replaced(configuration(settings, kinds), file=state)


def configuration(settings: Settings, kinds: Sequence[QuotaKind]) -> Configuration:
    """Build the quotas of the settings. Raises SettingsError with the key."""
    rules = config_rules(settings, kinds)
    return Configuration(settings, rules, _file_quotas(settings, rules, kinds))


def config_rules(settings: Settings, kinds: Sequence[QuotaKind]) -> ConfigRules:
    """The configs of topics and brokers that are the proxy's quotas."""
    enforce = settings.replication_enforced_by
    every = frozenset(key.name for key in replication.CONFIGS)
    native = frozenset(key.name for key in replication.NATIVE)
    return ConfigRules(
        list(kinds),
        left_to_brokers=native if enforce == "broker" else frozenset(),
        forwarded=native if enforce == "both" else frozenset(),
        # A broker would store these unknown configs, mark them sensitive, and not enforce them.
        unenforced=every - native if enforce == "broker" else frozenset(),
    )


def _file_quotas(settings: Settings, rules: ConfigRules, kinds: Sequence[QuotaKind]) -> FileQuotas:
    """Build the quotas of the settings. Raises SettingsError with the key."""
    quotas = settings.quotas
    source = _callback_source(quotas)
    keys = {key.name: key for kind in kinds for key in kind.keys}
    clients = read_clients(quotas.clients, keys, ("quotas", "clients"))
    own_scopes = read_scopes(quotas.clients, ("quotas", "clients"))
    others = frozenset(entity for entity, scope in own_scopes.items() if scope != quotas.scope)
    file = FileQuotas(
        partial(_limits, without_entries(settings), source, Scopes(quotas.scope, others)),
        (replace(quotas, clients=(), topics={}, brokers={}), others),
        clients,
        read_resources(quotas.topics, quotas.brokers, rules, ("quotas",)),
        retains_deleted=quotas.deleted_topic_configs == "retain",
    )
    _check_modes(quotas, [*keys, *(key.name for kind in kinds for key in kind.configs)])
    _check_exempt_addresses(quotas)
    return file


def _callback_source(quotas: Quotas) -> LimitSource | None:
    if quotas.callback is None:
        return None
    try:
        return load_callback(quotas.callback, quotas.callback_error)
    except ValueError as error:
        raise SettingsError(str(error), ("quotas", "callback")) from error


def _limits(
    settings: Settings,
    source: LimitSource | None,
    scopes: Scopes,
    quotas: Mapping[QuotaEntity, Mapping[str, float]],
) -> Limits:
    """The snapshot for the quota engine, of these quotas under the file's settings."""
    resources = Resources(proxy_topics=settings.proxy_topics)
    enforcement = _enforcement(settings.quotas, scopes)
    return Limits(quotas, resources=resources, settings=enforcement, source=source)


def _enforcement(settings: Quotas, scopes: Scopes) -> EnforcementSettings:
    """How quotas are measured and enforced."""
    mode, controller, replicated = settings.mode, settings.controller, settings.replication
    return EnforcementSettings(
        algorithm=RateAlgorithm(
            name=settings.algorithm,
            burst_seconds=settings.burst_seconds,
            window=RateWindow(settings.window_num, settings.window_size_seconds),
            max_throttle_seconds=settings.max_throttle_seconds,
        ),
        controller_window=RateWindow(controller.window_num, controller.window_size_seconds),
        replication_window=RateWindow(replicated.window_num, replicated.window_size_seconds),
        modes=EnforcementModes(ENFORCE, mode) if isinstance(mode, dict) else EnforcementModes(mode),
        exemptions=Exemptions(
            users=list(settings.exempt.users),
            client_ids=list(settings.exempt.client_ids),
            cidrs=list(settings.exempt.addresses),
        ),
        rejection_error=0 if settings.refusal_error == "auto" else settings.refusal_error,
        scopes=scopes,
    )


def _check_modes(quotas: Quotas, known: Sequence[str]) -> None:
    if not isinstance(quotas.mode, dict):
        return
    for name, value in quotas.mode.items():
        key = ("quotas", "mode", name)
        if name not in known:
            raise unknown(key, known)
        if value not in (ENFORCE, OBSERVE):
            raise SettingsError(f"expected one of {ENFORCE}, {OBSERVE}, got {value!r}", key)


def _check_exempt_addresses(quotas: Quotas) -> None:
    for place, address in enumerate(quotas.exempt.addresses):
        try:
            Networks([address])
        except ValueError as error:
            problem = f"{error}; expected an address or a network such as 10.0.0.0/8"
            raise SettingsError(problem, ("quotas", "exempt", "addresses", place)) from error
