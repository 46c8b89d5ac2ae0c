"""What users of the package call: a list, and nothing else."""

from __future__ import annotations

from relayout.assign.strategies.registry import Strategy, register_strategy
from relayout.backends.compile import compile  # noqa: A004 - the word for it
from relayout.backends.registry import Backend, register_backend
from relayout.errors import BadModelError, RelayoutError, VerificationError
from relayout.ops.facts import OpFacts
from relayout.ops.measure import Objective
from relayout.ops.registry import register_operator
from relayout.optimizer.certificates import check_certificate
from relayout.optimizer.compare import compare_strategies
from relayout.optimizer.drop_in import LayoutPass, simplify
from relayout.optimizer.explain import explain_node
from relayout.optimizer.fitting import check_profile
from relayout.optimizer.fuse import FuseResult, fuse
from relayout.optimizer.inspect import count, infer_layouts, inspect
from relayout.optimizer.measuring import Measuring
from relayout.optimizer.optimize import optimize
from relayout.optimizer.result import Result
from relayout.targets.profiles.profile import Profile
from relayout.targets.target import Target, register_target
from relayout.verify.equivalence import Equivalence, verify_models
from relayout.verify.verdict import NumericOptions

__all__ = [
    "Backend",
    "BadModelError",
    "Equivalence",
    "FuseResult",
    "LayoutPass",
    "Measuring",
    "NumericOptions",
    "Objective",
    "OpFacts",
    "Profile",
    "RelayoutError",
    "Result",
    "Strategy",
    "Target",
    "VerificationError",
    "check_certificate",
    "check_profile",
    "compare_strategies",
    "compile",
    "count",
    "explain_node",
    "fuse",
    "infer_layouts",
    "inspect",
    "optimize",
    "register_backend",
    "register_operator",
    "register_strategy",
    "register_target",
    "simplify",
    "verify_models",
]
