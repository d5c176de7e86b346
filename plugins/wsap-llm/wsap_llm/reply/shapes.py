"""The marks of an action in a reply: labels by language, and the calls of model families, which are rewritten to one of
two common forms; and marks of doubt around a call.

Labels are case-insensitive. Words for an earlier action, or for one of several, are not labels.

An action counts only if it stands alone: on separate lines, after a whole sentence, or after one of the few phrases by
which models announce an answer. Anywhere else, such as in `Mira: {...}`, `For example, {...}` or `{...} would be
wrong`, it is doubtful and not read, so that the model is asked again.
"""

from __future__ import annotations

import re
from bisect import bisect_left

from wsap_llm.reply.json_text.repair import find_values

ACTION_WORDS = (
    *("action", "move", "act", "acción", "accion", "aktion", "handlung", "ação", "acção", "acao", "azione", "mossa"),
    *("действие", "ход", "дія", "动作", "動作", "行动", "行動", "操作", "アクション", "행동", "동작", "액션"),
)
"""Words for an action, as labels and keys."""
ANSWER_WORDS = (
    *("decision", "choice", "command", "answer", "output", "response", "decisión", "elección", "respuesta"),
    *("entscheidung", "antwort", "wahl", "décision", "réponse", "choix", "decisão", "escolha", "resposta"),
    *("decisione", "scelta", "risposta", "решение", "выбор", "ответ", "команда", "决定", "決定", "选择", "選擇"),
    *("選択", "答案", "回答", "答え", "命令", "선택", "결정", "답변", "답"),
)
"""Words for an answer, which anything may follow."""
PARAMETER_WORDS = (
    *("input", "inputs", "params", "parameters", "args", "arguments", "parameter", "parámetros", "argumentos"),
    *("argumente", "paramètres", "parâmetros", "parametri", "параметры", "аргументы", "参数", "參數"),
    *("パラメータ", "引数", "매개변수", "인수"),
)
REASON_WORDS = (
    *("reasoning", "reason", "thought", "thoughts", "rationale", "explanation", "why", "analysis", "thinking"),
    *("razonamiento", "razón", "motivo", "pensamiento", "begründung", "grund", "überlegung", "raison", "raisonnement"),
    *("justification", "raciocínio", "razão", "ragionamento", "причина", "мысль", "рассуждение", "обоснование"),
    *("理由", "原因", "思考", "推理", "이유", "생각"),
)
_WHOSE = (
    *("my", "the", "next", "final", "chosen", "selected", "best", "recommended", "current", "immediate"),
    *("mi", "la", "próxima", "siguiente", "elegida", "meine?", "die", "nächste", "gewählte", "finale", "mon", "ma"),
    *("prochaine", "choisie", "minha", "meu", "escolhida", "mia", "prossima", "scelta", "мо[её]", "мой", "следующее"),
    *("следующий", "выбранное", "итоговое", "окончательный", "我的", "下一步", "最终", "最終", "选择的"),
    *("次の", "私の", "다음", "나의", "내", "최종"),
)

# Placeholders for the name in examples of the format.
PLACEHOLDERS = frozenset({
    *("name", "actionname", "youraction", "string", "action", "theaction", "nameofaction", "nameoftheaction", "xxx"),
    *("actionnamehere", "chosenaction", "insertaction", "toolname", "nameoftool", "none", "null", "na", "tool", ""),
    *("actionyouchoose", "youractionhere", "functionname", "oneoftheactions", "anyaction"),
})  # fmt: skip


def _any(words: tuple[str, ...]) -> str:
    return "|".join(sorted(words, key=len, reverse=True))


WHOSE = rf"(?:(?:{_any(_WHOSE)})[ _]?){{0,3}}"
"""Expression for words that may precede a label."""
CHOSEN = (
    r"(?:[ _](?:to take|taken|is|i take|i choose|chosen|selected|this turn|for this turn|now|final|finale|elegida"
    r"|escolhida|scelta|choisie)){0,2}"
)
"""Expression for words that may follow a label."""
ACTIONS, ANSWERS, PARAMETERS = _any(ACTION_WORDS), _any(ANSWER_WORDS), _any(PARAMETER_WORDS)
"""Expressions for any of the words."""
HERE = r"(?:here(?: is|['’]s)|aquí está|hier ist|hier|voici|ecco|aqui está|вот|这是|以下是|これが|여기)[ ]?"
"""Expression for words that announce an answer in the next line."""

_ARGUMENTS = r"(?P<given>(?:[^()\"']|\"[^\"]{0,500}\"|'[^']{0,500}'|\([^()]{0,200}\)){0,800})"
_STEP = (
    r"^(?:>>>[ ])?(?:[\w, ]{1,80}=\s?)?\w{1,30}\.step\((?:action\s?=\s?)?(?!action\))"
    r"(?P<q>[\"']?)(?P<name>[A-Za-z_][\w ]{0,80})(?P=q)"
)
_STEP_ENDS = r"\)[ \t;]*(?:#[^\n]{0,200})?$"
_BOXED = (
    r"(?<![\"'])\\boxed\{(?:\\(?:text|texttt|textbf|mathrm|mathtt)\{(?P<inner>[^{}]{0,400})\}"
    r"|(?P<given>\{.{0,2000}\}|[^{}]{0,400}))\}"
)
_KIMI = (
    r"<\|tool_call_begin\|>\s?(?:functions\.)?(?P<name>\w{1,60})(?::\d{1,4})?\s?<\|tool_call_argument_begin\|>"
    r"(?P<given>[^<]{0,4000})<\|tool_call_end\|>"
)
_DEEPSEEK = (
    r"<｜tool▁call▁begin｜>(?:function<｜tool▁sep｜>)?(?P<name>\w{1,60})(?:<｜tool▁sep｜>)?\s{0,3}(?:```json)?"
    r"(?P<given>[^`<]{0,4000})(?:```)?\s{0,3}<｜tool▁call▁end｜>"
)
_LLAMA = rf"<\|python_tag\|>(?P<name>[\w.]{{1,60}}?)\.call\({_ARGUMENTS}\)"
_LIQUID = r"<\|tool_call_start\|>\[(?P<given>[^\n\[\]]{1,2000})\]<\|tool_call_end\|>"
_MISTRAL = r"\[TOOL_CALLS\]\s?(?P<name>[\w.]{1,60})\[ARGS\]"
_ANSWERED = r"<answer>\g<name>(\g<given>)</answer>"
_CALLED = r"<function=\g<name>>\g<given></function>"
_DIALECTS: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(pattern, re.MULTILINE), form)
    for pattern, form in (
        (_BOXED, r"<answer>\g<inner>\g<given></answer>"),
        # A Gymnasium step, alone on its line: obs = env.step("move_left").
        (_STEP + _STEP_ENDS, r"<answer>\g<name></answer>"),
        (rf"{_STEP},\s?{_ARGUMENTS}{_STEP_ENDS}", _ANSWERED),
        # Within a loop or a condition: it may be executed often, or never.
        (r"^[ \t]{1,20}[^\n]{0,80}\.step\([^\n]{1,200}$", "<answer>a step within a block</answer>"),
        (_LLAMA, _ANSWERED),
        (_LIQUID, r"<answer>\g<given></answer>"),
        (_MISTRAL, r"[TOOL_CALLS]\g<name>"),
        (_KIMI, _CALLED),
        (_DEEPSEEK, _CALLED),
    )
)
_MARKS = ("\\boxed", ".step(", "tool", "TOOL", ".call(")
_BRACKETS = re.compile(r"<[|｜](?:tool_calls_section|tool▁calls)[_▁](?:begin|end)[|｜]>|\bfunctools(?=\[\s?\{)")


def rewritten(text: str) -> str:
    """Return a reply with the calls of model families rewritten, except within JSON values."""
    if not any(mark in text for mark in _MARKS):
        return text
    text = _BRACKETS.sub("", text)
    for pattern, form in _DIALECTS:
        if pattern.search(text) is None:
            continue
        values = find_values(text)
        starts = [value.start for value in values]
        pieces: list[str] = []
        at = 0
        for match in pattern.finditer(text):
            before = bisect_left(starts, match.start()) - 1
            if before < 0 or match.start() >= values[before].end:
                pieces += [text[at : match.start()], match.expand(form).replace("\\_", "_")]
                at = match.end()
        text = "".join([*pieces, text[at:]])
    return text


# --- doubt ---

# Only non-words: quotes, fences, bullets, wrapping tags and template roles. Possessive, to avoid backtracking.
_BARE = re.compile(
    r"(?:```\w{0,12}|>>>|\d{1,2}[.)]|(?:(?:const|let|var|return)\s{1,3})?[A-Za-z_][\w.]{0,40}\s?[=(]"
    r"|<\|?(?:tool_call|function_call|answer|output|response|reply|action|final|final_answer|json|result)\|?>"
    r"|[\s`~'\"“*_#({\[:,$\\-])*+",
    re.IGNORECASE,
)
_OWN = r"(?:action|answer|response|reply|json|output|choice|decision|move|object|assistant|(?:tool|function) call)"
_KIND = r"(?:(?:my|the|a|an|final|next|chosen|selected|best|valid|corrected|json) )*"
_ANNOUNCES = re.compile(
    r"[\W_]*(?:(?:so|therefore|thus|hence|then|and|now|okay|ok|sure|alright|corrected|final|json)\b[\s,]*)*"
    rf"{_KIND}(?:{_OWN}\b[\s(]*)?(?:(?:is|in|format|json|as)\b[\s)]*)*(?:(?:for )?this turn)?[\W_]*"
    rf"|[\W_]*here(?: you go|(?:['’]s| is| are) (?:what|{_KIND}{_OWN})(?: in json(?: format)?)?"
    r"(?: i(?:['’]ll| will)? (?:do|take|choose))?)[\W_]*|[\W_]*i (?:answer|reply|respond|choose)(?: with)?[\W_]*"
    r"|[\W_]*i(?:['’]ll| will)(?! not| never| tell)(?: (?!when|later|once|after|if|to)[a-z_]{1,20}){1,4}[\W_]*"
    rf"|[\W_]*(?:{HERE})?{WHOSE}(?:{ACTIONS}|{ANSWERS}){CHOSEN}[\W_]*",
    re.IGNORECASE,
)
_NEXT_KEY = re.compile(r"""[\s,}\]]{0,9}["']\w{1,20}["']\s{0,3}:""")
_SAYING = re.compile(r"\b(?:said|says|told|wrote|writes|asked|asks|wants|claims)\b", re.IGNORECASE)
# "Mira told me this." above a call.
_POINTS_ON = re.compile(_SAYING.pattern + r"[^.!?\n]{0,40}\b(?:this|that|so|following)\W{0,9}$", re.IGNORECASE)
_CLAUSE = re.compile(r"[.!?,;\n]")
_DOUBT = re.compile(
    r"\b(?:not?|never|would|could|might|should|wrong|if|unless|said|says|told|tells|wrote|writes|asked|asks|wants?"
    r"|claims?|according|pretend|example|instance|instead)\b|n['’]t\b",
    re.IGNORECASE,
)
_TAKEN_BACK = re.compile(
    r"(?:^|[.!?\n…—–-]\s{0,5})\W{0,3}(?:actually|wait|hold on|scratch that|on second thought|correction|never ?mind"
    r"|no(?=[,.!])|oops|sorry|hmm|but|however|instead|or|alternatively|just kidding|if|unless)\b"
    r"|\bor (?:maybe|perhaps)\b|\bnot (?:really|a good idea|possible|allowed|legal|available|yet)\b"
    r"|\bon second thought\b|\bscratch that\b",
    re.IGNORECASE,
)


def stands_alone(text: str, start: int, end: int, before_it: int = 0) -> bool:
    """Return whether the call at `text[start:end]` is not part of a sentence on its line or the line above; `before_it`
    is the end of the previous call."""
    line_start = max(before_it, start - 400, text.rfind("\n", max(0, start - 400), start) + 1)
    before = text[line_start:start]
    if text[start] == "(":  # the parameters of a call, as in dict(action="wait")
        before = re.sub(r"\w{1,30}$", "", before)
    if _BARE.fullmatch(before):
        above = text[max(before_it, line_start - 400) : line_start].rstrip()
        above = re.sub(r"(?:```|~~~)\w{0,12}$", "", above).rstrip()
        if above.endswith((":", "：")) and not _announced(above):
            return False
        if _POINTS_ON.search(above):
            return False
    elif (announcing := before.rstrip("*_`\"'$\\[( ")).endswith((":", "：")):
        if not _announced(announcing):
            return False
    elif text.startswith("<answer>", start) and _ANNOUNCES.fullmatch(before):
        pass
    elif before.rstrip()[-1:] not in (".", "!") or ":" in before or _SAYING.search(before):
        return False
    line_end = text.find("\n", end, end + 400)
    after = text[end : line_end if line_end >= 0 else end + 400]
    if _NEXT_KEY.match(after):
        return True
    after = after.lstrip("`~'\"”*_)}],.;$\\ \t")
    first = re.split(r"[.!?](?:\s|$)", after, maxsplit=1)[0]
    return not after[:1].islower() and not after.startswith("?") and not _DOUBT.search(first)


def _announced(text: str) -> bool:
    return _ANNOUNCES.fullmatch(_CLAUSE.split(text.rstrip(":："))[-1]) is not None


def taken_back(text: str, end: int) -> bool:
    """Return whether the text after a call may take it back."""
    return _TAKEN_BACK.search(text, end) is not None
