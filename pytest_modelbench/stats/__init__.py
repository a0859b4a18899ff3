"""Statistics of a report: pure functions on numbers.

Nothing here knows of cases, candidates or stores by name, and importing it imports neither numpy
nor scipy: a function that needs them imports them when it is called.
"""

from pytest_modelbench.stats.difference import (
    Difference,
    newcombe_paired,
    paired_difference,
    tango_paired,
)
from pytest_modelbench.stats.family import (
    Decision,
    RankInterval,
    decide,
    holm,
    min_disagreements,
    rank_intervals,
)
from pytest_modelbench.stats.looks import (
    EProcess,
    Stage,
    e_process,
    look_alpha,
)
from pytest_modelbench.stats.missing import Bounds, PairBounds, pair_bounds, rate_bounds
from pytest_modelbench.stats.paired import (
    PairCounts,
    SignFlip,
    case_differences,
    mcnemar_exact,
    mcnemar_midp,
    pair_counts,
    sign_flip,
    sign_flip_test,
)
from pytest_modelbench.stats.planning import (
    RepeatPlan,
    cases_needed,
    gate_pass_chance,
    gate_pass_chance_repeats,
    least_detectable_difference,
    power,
    repeat_plan,
)
from pytest_modelbench.stats.printing import (
    NO_ESTIMATE,
    format_interval,
    format_p,
    format_percent,
    format_points,
    format_points_interval,
    format_rate,
)
from pytest_modelbench.stats.proportion import (
    Interval,
    clopper_pearson,
    jeffreys,
    jeffreys_raw,
    wilson,
)
from pytest_modelbench.stats.repeats import (
    FEW_GROUPS,
    CaseScore,
    CaseScores,
    VarianceSplit,
    case_mean_t,
    case_score,
    case_score_interval,
    group_means,
    pass_at_k,
    pass_hat_k,
    variance_split,
)
from pytest_modelbench.stats.resources import (
    CostPerPass,
    CostRatio,
    TimeQuantile,
    cost_per_pass,
    cost_ratio,
    time_quantile,
    time_ratio,
)

__all__ = [
    # one proportion
    "Interval",
    "wilson",
    "jeffreys",
    "jeffreys_raw",
    "clopper_pearson",
    # repeats, rewards, pass@k and pass^k
    "CaseScores",
    "CaseScore",
    "case_score",
    "case_score_interval",
    "case_mean_t",
    "VarianceSplit",
    "variance_split",
    "group_means",
    "FEW_GROUPS",
    "pass_at_k",
    "pass_hat_k",
    # a pair
    "SignFlip",
    "sign_flip",
    "sign_flip_test",
    "PairCounts",
    "pair_counts",
    "case_differences",
    "mcnemar_exact",
    "mcnemar_midp",
    "Difference",
    "paired_difference",
    "newcombe_paired",
    "tango_paired",
    # a family
    "Decision",
    "decide",
    "holm",
    "min_disagreements",
    "RankInterval",
    "rank_intervals",
    # planning and gates
    "power",
    "least_detectable_difference",
    "cases_needed",
    "RepeatPlan",
    "repeat_plan",
    "gate_pass_chance",
    "gate_pass_chance_repeats",
    # cost and time
    "CostPerPass",
    "cost_per_pass",
    "CostRatio",
    "cost_ratio",
    "TimeQuantile",
    "time_quantile",
    "time_ratio",
    # what is missing, what was shown
    "Bounds",
    "rate_bounds",
    "PairBounds",
    "pair_bounds",
    "Stage",
    "look_alpha",
    "EProcess",
    "e_process",
    # text
    "NO_ESTIMATE",
    "format_p",
    "format_percent",
    "format_interval",
    "format_rate",
    "format_points",
    "format_points_interval",
]
