"""What a controller tells its workers."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pytest_modelbench.gateway.address import Address
from pytest_modelbench.plan import Plan
from pytest_modelbench.records import Candidate
from pytest_modelbench.settings import Settings
from pytest_modelbench.store.writer import RunInfo


@dataclass(frozen=True)
class Orders:
    """What a controller tells a worker, all of it in strings.

    ``tags`` are by pack and case id.
    ``gateway`` is None where no cell calls a model. ``faulted`` are the
    node ids that ``--lf`` selects, ``controller`` is a pid.
    """

    settings: Settings
    plan: Plan
    args: tuple[str, ...]
    folders: Mapping[str, str]
    tags: Mapping[str, Mapping[str, Sequence[str]]]
    candidates: tuple[Candidate, ...]
    run_info: RunInfo
    folder: str
    gateway: Address | None
    faulted: tuple[str, ...]
    controller: int

    def to_payload(self) -> str:
        """Return the form that travels in ``workerinput``."""
        return json.dumps(
            {
                "settings": self.settings.to_json(),
                "plan": self.plan.to_json(),
                "args": self.args,
                "folders": dict(self.folders),
                "tags": self.tags,
                "candidates": [c.model_dump(mode="json") for c in self.candidates],
                "run_info": self.run_info.model_dump(mode="json"),
                "folder": self.folder,
                "gateway": [self.gateway.socket_path, self.gateway.secret] if self.gateway else [],
                "faulted": self.faulted,
                "controller": self.controller,
            }
        )

    @classmethod
    def from_payload(cls, payload: str) -> Orders:
        """Read ``to_payload``'s form back."""
        data = json.loads(payload)
        return cls(
            settings=Settings.from_json(data["settings"]),
            plan=Plan.from_json(data["plan"]),
            args=tuple(data["args"]),
            folders=data["folders"],
            tags=data["tags"],
            candidates=tuple(Candidate.model_validate(c) for c in data["candidates"]),
            run_info=RunInfo.model_validate(data["run_info"]),
            folder=data["folder"],
            gateway=Address(*data["gateway"]) if data["gateway"] else None,
            faulted=tuple(data["faulted"]),
            controller=data["controller"],
        )
