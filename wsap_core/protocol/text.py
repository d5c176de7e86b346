"""The messages for language models, in the wording of the protocol's specification; golden files guard them."""

from __future__ import annotations

from wsap_core.protocol.actions import ActionSpace
from wsap_core.protocol.lines import dedent
from wsap_core.protocol.observation import Observation
from wsap_core.protocol.words import words_of
from wsap_core.untrusted import single_line

SYSTEM_TEMPLATES = {
    "en": """\
You are an agent playing {game_name}.

{game_description}

Available actions:
{action_space}

Your goal is to survive and accomplish objectives. Respond with a JSON action.""",
    "ru": """\
Ты — агент в игре «{game_name}».

{game_description}

Доступные действия:
{action_space}

Твоя цель — выжить и выполнить задачи. Ответь действием в JSON.""",
}
"""Language -> the system message."""

QUESTIONS = {
    "en": 'What action do you take? Respond with JSON: {"action": "name", "params": {}, "reasoning": "why"}',
    "ru": 'Что ты делаешь? Ответь в JSON: {"action": "name", "params": {}, "reasoning": "почему"}',
}
"""Language -> the end of each user message."""


def system_message(game_name: str, game_description: str, action_space: ActionSpace, language: str = "en") -> str:
    """Return the system message, which is sent once at the start of a session."""
    words = words_of(language)
    return SYSTEM_TEMPLATES[words.language].format(
        game_name=single_line(game_name),
        game_description=dedent(game_description),
        action_space=action_space.listed().to_text(words),
    )


def user_message(observation: Observation) -> str:
    """Return the user message of one step: the observation, then the question."""
    return f"{observation.to_text()}\n\n{QUESTIONS[words_of(observation.language).language]}"
