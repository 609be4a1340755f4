"""XGBoostLSS: XGBoost's trees for all parameters of a distribution."""

from __future__ import annotations

import numpy as np
import torch
import xgboost as xgb
from xgboostlss.distributions.distribution_utils import DistributionClass
from xgboostlss.model import XGBoostLSS
from xgboostlss.utils import identity_fn

from .counts import Counts
from .task import Task
from .two import LIMIT, PATIENCE, RATE, ROUNDS, mean_and_worth, start


class Rows:
    """A torch distribution whose value is a row's number: its count and trials are looked up."""

    def __init__(self, kind: str, y: np.ndarray, n: np.ndarray) -> None:
        self.kind, self.y, self.n = kind, torch.tensor(y), torch.tensor(n)

    def __call__(self, link: torch.Tensor, log_worth: torch.Tensor) -> Rows:
        found = Rows.__new__(Rows)
        found.kind, found.y, found.n = self.kind, self.y, self.n
        found.link, found.log_worth = link.double(), log_worth.double()
        return found

    def log_prob(self, number: torch.Tensor) -> torch.Tensor:
        at = number.long()
        y, n = self.y[at], self.n[at]
        worth = torch.exp(torch.clamp(self.log_worth, -LIMIT, LIMIT))
        log_gamma = torch.lgamma
        if self.kind == "binomial":
            a, b = torch.sigmoid(self.link) * worth, torch.sigmoid(-self.link) * worth
            return (
                log_gamma(y + a) - log_gamma(a) + log_gamma(n - y + b) - log_gamma(b)
                + log_gamma(worth) - log_gamma(n + worth)
            )  # fmt: skip
        log_m = torch.log(n) + torch.clamp(self.link, -40, 40)
        log_all = torch.logaddexp(log_m, torch.log(worth))
        return (
            log_gamma(y + worth) - log_gamma(worth)
            + y * (log_m - log_all) + worth * (torch.log(worth) - log_all)
        )  # fmt: skip


def location_scale(task: Task) -> Counts:
    torch.manual_seed(task.seed)
    torch.set_num_threads(1)
    distribution = DistributionClass(
        Rows(task.kind, task.y, task.n),
        discrete=True,
        n_dist_param=2,
        param_dict={"link": identity_fn, "log_worth": identity_fn},
        distribution_arg_names=["link", "log_worth"],
    )
    model = XGBoostLSS(distribution)
    model.start_values = start(task.kind, task.y, task.n)
    settings = {"eta": RATE, "max_depth": 3, "nthread": 1, "seed": task.seed}
    rows = xgb.DMatrix(task.x, label=np.arange(len(task.y)))
    history = model.cv(
        dict(settings), rows, ROUNDS, nfold=5, early_stopping_rounds=PATIENCE, seed=task.seed
    )
    model.train(dict(settings), rows, num_boost_round=len(history))
    found = model.predict(xgb.DMatrix(task.x_new), pred_type="parameters").to_numpy(float)
    mean, worth = mean_and_worth(task.kind, found.T)
    return Counts.of(task.kind, task.n_new, mean, worth)
