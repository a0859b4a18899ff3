from __future__ import annotations

from pathlib import Path

import pytest

from pytest_modelbench.candidates.registry import Registry
from pytest_modelbench.errors import RegistryProblem
from pytest_modelbench.records import Candidate

CONFIG = """\
model_list:
  - model_name: team-coder
    litellm_params:
      model: hosted_vllm/coder
      api_base: os.environ/CODER_BASE
      api_key: os.environ/CODER_KEY
      temperature: 0.2
      rpm: 60
      tpm: 90000
      input_cost_per_token: 1e-6
    model_info:
      id: 4711
      max_input_tokens: 32768
      output_cost_per_token: 0.000002
  - model_name: local
    litellm_params: {model: openai/local, api_base: "http://localhost:1/v1", api_key: none}
  - model_name: balanced
    litellm_params: {model: openai/one}
  - model_name: balanced
    litellm_params: {model: openai/two}
  - model_name: careless
    litellm_params: {model: openai/x, api_key: my-very-secret}
  - model_name: headers
    litellm_params: {model: openai/x, extra_headers: {Authorization: Bearer very-secret}}
  - model_name: seed
    litellm_params: {model: openai/x}
  - model_name: "openai/*"
    litellm_params: {model: "openai/*"}
  - model_name: empty
general_settings:
  master_key: sk-1234
"""


@pytest.fixture
def registry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Registry:
    monkeypatch.setenv("CODER_BASE", "http://10.1.1.1:8000/v1")
    (tmp_path / "config.yaml").write_text(CONFIG)
    (tmp_path / "modelbench.toml").write_text('litellm_config = "config.yaml"\n')
    return Registry.read(tmp_path)


def test_an_alias_is_a_candidate_with_its_parameters_prices_and_facts(registry: Registry) -> None:
    coder, local = registry.resolve(["team-coder", "local"])
    assert coder == Candidate(
        name="team-coder",
        model="hosted_vllm/coder",
        api_base="http://10.1.1.1:8000/v1",
        api_key_env="CODER_KEY",
        requests_per_minute=60,
        tokens_per_minute=90000,
        params={"temperature": 0.2},
        price={"input": 1.0, "output": 2.0},
        facts={"max_input_tokens": 32768},
    )
    assert local.api_key_env == ""
    assert registry.known == ("local", "team-coder", "reference", "seed")


@pytest.mark.parametrize(
    ("name", "line", "what"),
    [
        ("balanced", 17, "stands for several deployments (lines 17 and 19)"),
        ("careless", 21, "holds a key itself"),
        ("headers", 23, "extra_headers.Authorization is a secret"),
        ("empty", 29, "has no litellm_params"),
    ],
)
def test_an_entry_that_is_not_sound_is_refused_when_it_is_asked_for(
    registry: Registry, name: str, line: int, what: str
) -> None:
    with pytest.raises(RegistryProblem) as caught:
        registry.resolve([name])
    assert what in caught.value.what
    assert caught.value.line == line
    assert "very-secret" not in str(caught.value)


def test_a_variable_that_is_not_set_stops_only_its_own_alias(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CODER_BASE", raising=False)
    (tmp_path / "config.yaml").write_text(CONFIG)
    registry = Registry.read(tmp_path, Path("config.yaml"))
    assert registry.resolve(["local"])[0].model == "openai/local"
    with pytest.raises(RegistryProblem, match="variable CODER_BASE, which is not set"):
        registry.resolve(["team-coder"])


def test_the_same_alias_in_both_files_is_refused(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text(CONFIG)
    (tmp_path / "modelbench.toml").write_text(
        'litellm_config = "config.yaml"\n[candidates.local]\nmodel = "openai/x"\n'
    )
    with pytest.raises(RegistryProblem, match=r"local is in config.yaml as well") as caught:
        Registry.read(tmp_path)
    assert caught.value.line == 2


@pytest.mark.parametrize(
    ("text", "line", "what"),
    [
        ("model_list:\n  - a: [\n", 3, "is not YAML"),
        ("models: []\n", None, "has no model_list"),
        ("model_list:\n  - litellm_params: {}\n", 2, "has no model_name"),
    ],
)
def test_a_file_that_is_no_configuration_is_refused(
    tmp_path: Path, text: str, line: int | None, what: str
) -> None:
    (tmp_path / "config.yaml").write_text(text)
    with pytest.raises(RegistryProblem) as caught:
        Registry.read(tmp_path, Path("config.yaml"))
    assert what in caught.value.what
    assert caught.value.line == line
