"""All providers, and which of them are switched on."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence

from relayout.backends.torch.providers.eager import EagerProvider
from relayout.backends.torch.providers.inductor_provider import InductorProvider
from relayout.backends.torch.providers.library_provider import LibraryProvider
from relayout.backends.torch.providers.native_provider import NativeProvider
from relayout.backends.torch.providers.provider import Provider
from relayout.backends.torch.providers.triton_provider import TritonProvider
from relayout.errors import RelayoutError

SETTING = "RELAYOUT_PROVIDERS"
"""The environment variable that names the providers to use, with commas between them."""

EAGER_PROVIDER = EagerProvider()

PROVIDERS: tuple[Provider, ...] = (
    NativeProvider(),
    LibraryProvider(),
    EAGER_PROVIDER,
    InductorProvider(),
    TritonProvider(),
)
"""Of candidates that are about as fast the one whose provider stands first is taken."""

OPTIONAL = tuple(provider.name for provider in PROVIDERS if provider is not EAGER_PROVIDER)


def providers_named(names: Sequence[str]) -> tuple[Provider, ...]:
    """Some providers, and torch's operators, which are always there."""
    unknown = [name for name in names if name not in OPTIONAL]
    if unknown:
        known = ", ".join(OPTIONAL)
        raise RelayoutError(f"unknown provider {unknown[0]!r} in {SETTING}; there are {known}")
    return tuple(each for each in PROVIDERS if each is EAGER_PROVIDER or each.name in names)


def ever_plainer() -> Iterator[tuple[Provider, ...]]:
    """The providers that are enabled, those of them that call others' kernels, torch alone."""
    enabled = enabled_providers()
    sets = (
        enabled,
        tuple(each for each in enabled if not each.is_own),
        tuple(each for each in enabled if each is EAGER_PROVIDER),
    )
    yield from dict.fromkeys(sets)


def enabled_providers() -> tuple[Provider, ...]:
    """The providers that the environment names; all where it names none."""
    setting = os.environ.get(SETTING)
    if setting is None:
        return PROVIDERS
    return providers_named([name.strip() for name in setting.split(",") if name.strip()])
