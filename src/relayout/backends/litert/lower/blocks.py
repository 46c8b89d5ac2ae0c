"""Blocks of pixels as channels, and channels as blocks of pixels."""

from __future__ import annotations

from relayout.backends.litert.call import LiteLowering
from relayout.backends.litert.lower.channels import channels_first
from relayout.backends.litert.lower.channels import channels_last as last
from relayout.backends.litert.lower.views import depth_to_space, space_to_depth

LOWERINGS: dict[str, LiteLowering] = {
    "DepthToSpace": channels_first(depth_to_space),
    "SpaceToDepth": channels_first(space_to_depth),
}

CHANNELS_LAST: dict[str, LiteLowering] = {
    "DepthToSpace": last(depth_to_space),
    "SpaceToDepth": last(space_to_depth),
}
