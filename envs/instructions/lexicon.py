"""Closed lists of English words that instructions ask about, and the verbs that a response may start with."""

from __future__ import annotations

import re

_STOP_WORDS_TEXT = """
i me my myself we our ours ourselves you your yours yourself yourselves he him his himself she her hers
herself it its itself they them their theirs themselves what which who whom this that these those am is
are was were be been being have has had having do does did doing a an the and but if or because as until
while of at by for with about against between into through during before after above below to from up
down in out on off over under again further then once here there when where why how all any both each few
more most other some such no nor not only own same so than too very s t can will just don should now d ll
m o re ve y ain aren couldn didn doesn hadn hasn haven isn ma mightn mustn needn shan shouldn wasn weren
won wouldn
"""
STOP_WORDS = frozenset(_STOP_WORDS_TEXT.split())
"""The stop words of nltk's English list that are runs of letters."""

_CONJUNCTIONS_TEXT = """
and but for nor or so yet
"""
CONJUNCTIONS = frozenset(_CONJUNCTIONS_TEXT.split())
"""The coordinating conjunctions."""

_PRONOUNS_TEXT = """
i me we us you he him she her it they them my mine our ours your yours his hers its their theirs myself
ourselves yourself yourselves himself herself itself themselves this that these those who whom whose
which what whoever whomever whatever whichever anybody anyone anything everybody everyone everything
nobody nothing somebody someone something each either neither both all some any none
"""
PRONOUNS = frozenset(_PRONOUNS_TEXT.split())
"""Personal, possessive, reflexive, demonstrative, interrogative and indefinite ones, as IFBench counts."""

_NAMES_TEXT = """
Emma Liam Sophia Jackson Olivia Noah Ava Lucas Isabella Mason Mia Ethan Charlotte Alexander Amelia
Benjamin Harper Leo Zoe Daniel Chloe Samuel Lily Matthew Grace Owen Abigail Gabriel Ella Jacob Scarlett
Nathan Victoria Elijah Layla Nicholas Audrey David Hannah Christopher Penelope Thomas Nora Andrew Aria
Joseph Claire Ryan Stella Jonathan
"""
NAMES = _NAMES_TEXT.split()
"""The person names that IFBench's prompts list."""

_CAPITALS_TEXT = """
Reykjavik Helsinki Oslo Tallinn Stockholm Riga Moscow Copenhagen Vilnius Minsk Dublin Berlin Amsterdam
Warsaw London Brussels Prague Luxembourg Paris Vienna Bratislava Budapest Vaduz Chisinau Bern Ljubljana
Zagreb
"""
CAPITALS = _CAPITALS_TEXT.split()
"""Capitals of Europe north of 45 degrees, from north to south."""

_VERBS_TEXT = """
accept access achieve act adapt add address adjust admit adopt advance advise affect afford agree aim
allow analyze analyse announce answer anticipate apologize appear apply appreciate approach argue arise
arrange arrive ask assemble assert assess assign assist assume assure attach attack attempt attend
attract avoid awake bake balance base be bear beat become beg begin behold believe belong bend bet bind
bite blend bless blow boil book borrow bounce break breathe brew bring broaden build burn buy calculate
call calm carry cast catch cause celebrate challenge change charge chase check cherish choose chop circle
cite claim clarify clean clear climb close collaborate collect combine come comfort command commit
communicate compare compile complete compose compute concern conclude conduct confirm connect consider
consist construct consult contact contain continue contribute control convert convey cook cool copy
correct cost count cover craft crash create cross cultivate cut dance dare deal decide declare decrease
dedicate define delete deliver delve demonstrate depend derive describe design desire detail detect
determine develop devote differ dig digest dip direct discover discuss display dissolve dive divide do
document double draft drag draw dream dress drift drill drink drive drop dry earn ease eat edit educate
elect elevate eliminate embark embody embrace emerge emphasize employ empower enable encounter encourage
end endure engage enhance enjoy ensure enter entertain envision equip escape establish estimate evaluate
examine excel exchange excuse execute exercise exhibit exist expand expect experience experiment explain
explore express extend extract face fail fall feature feed feel fetch fight fill filter find finish fit
fix flee float flow fly focus fold follow forget forgive form formulate foster frame free freeze gain
gather gaze generate get give glance go grab grant grasp greet grind grow guarantee guess guide handle
hang happen hate have heal hear heat help hide highlight hit hold hope host hunt hurry identify ignite
illustrate imagine implement imply import improve include incorporate increase indicate influence inform
initialize initiate insert inspect inspire install integrate intend interpret introduce invent invest
investigate invite involve join journey judge jump justify keep kick kill kneel knit know label land last
laugh launch lay lead lean leap learn leave lend let leverage lie lift light like limit link list listen
live load locate lock log look lose love lower maintain make manage mark marry master match matter
maximize mean measure meet melt memorize mention merge mind minimize miss mix model modify monitor
motivate move multiply name narrate navigate need neglect note notice notify nurture obey observe obtain
occur offer open operate optimize opt order organize outline overcome owe own pack paint participate pass
pause pay perform permit persist pick picture place plan plant play plot point ponder possess post pour
practice praise pray prefer prepare present preserve press pretend prevent print prioritize proceed
process produce promise promote prompt propose protect prove provide publish pull purchase pursue push
put quantify question quit quote race raise reach react read realize recall receive recite recognize
recommend record recover reduce refer refine reflect refuse regard reject relate relax release rely
remain remember remind remove render repair repeat replace reply report represent request require rescue
research resemble resist resolve respect respond rest restore result retain retrieve return reveal
reverse review revise rewrite ride ring rise risk roam roll root rotate row rub ruin run rush sail save
say scan scatter schedule scroll search secure see seek seem select sell send separate serve set settle
shake shape share shift shine shoot show shut sign simmer simplify sing sink sit skip sleep slice slide
slip smell smile soar solve sort sound spark speak specify spend spin split spread sprinkle spring stand
stare start state stay steal steer step stick stir stop store strengthen stress stretch strike strive
structure struggle study submit subtract succeed suffer suggest suit summarize supply support suppose
surprise surround survive sustain swim switch take talk taste teach tear tell tend test thank think
thrive throw tie touch tour trace track trade train transcend transform translate transport travel treat
trust try turn type uncover understand undertake unfold unleash unlock unveil update upgrade urge use
utilize validate value vary venture verify view visit visualize vote wait wake walk wander want warm warn
wash waste watch wave wear weave weep weigh welcome whisper win wipe wish witness wonder work worry wrap
write yield
"""
_VERBS = frozenset(_VERBS_TEXT.split())
_IRREGULAR_TEXT = """
am is are was were been being has had does did done began begun become became bent bet bound bit bitten
blew blown broke broken brought built burnt bought came cast caught chose chosen cut dealt dug drew drawn
dreamt drank drunk drove driven ate eaten fell fallen fed felt fought found fled flew flown forgot
forgotten forgave forgiven froze frozen got gotten gave given went gone ground grew grown hung heard hid
hidden hit held hurt kept knelt knew known laid led leant leapt learnt left lent lay lain lit lost made
meant met paid put quit read rode ridden rang rung rose risen ran said saw seen sought sold sent set
shook shaken shone shot shown shut sang sung sank sunk sat slept slid spoke spoken spent spun split
spread sprang sprung stood stole stolen stuck struck strove swam swum took taken taught tore torn told
thought threw thrown understood woke woken wore worn wove woven wept won wrote written rewrote rewritten
"""
_IRREGULAR = frozenset(_IRREGULAR_TEXT.split())


def is_verb(word: str) -> bool:
    """Return whether an English word may be a verb: one of 700 common ones in any of its forms.

    >>> [is_verb(word) for word in ("Imagine", "running", "tried", "Went", "The", "Thing", "can")]
    [True, True, True, True, False, False, False]
    """
    plain = word.lower()
    return plain in _IRREGULAR or any(base in _VERBS for base in _bases(plain))


def _bases(word: str) -> list[str]:
    """Return what the word may be a form of: without its ending and a doubled letter, or with a lost "e"."""
    bases = [word]
    for ending in ("ing", "ed", "es", "s", "d"):
        if word.endswith(ending) and len(word) > len(ending) + 1:
            stem = word.removesuffix(ending)
            bases += [stem, stem + "e"]
            if stem[-1] == "i":
                bases.append(stem[:-1] + "y")
            if stem[-1] == stem[-2:-1]:
                bases.append(stem[:-1])
    return bases


def syllables(word: str) -> int:
    """Return how many syllables an English word has, by its groups of vowels; at least 1.

    A final "e" is silent but for "-le" behind a consonant, and so are "-es" and "-ed" but for those that are
    heard ("boxes", "wanted"). IFBench looks words up in a dictionary first.

    >>> [syllables(word) for word in ("cat", "table", "created", "walked", "boxes", "science", "the")]
    [1, 2, 3, 1, 2, 2, 1]
    """
    plain = re.sub(r"[^a-z]", "", word.lower()).replace("qu", "q")
    if plain in _IRREGULAR_SYLLABLES:
        return _IRREGULAR_SYLLABLES[plain]
    count = len(_VOWELS.findall(plain)) + len(_APART.findall(plain))
    return max(1, count - bool(_SILENT.search(plain)))


_IRREGULAR_SYLLABLES = dict.fromkeys(
    ("people", "hundred", "something", "sometimes", "someone", "business", "evening", "beloved"), 2
)
_VOWELS = re.compile("[aeiouy]+")
_APART = re.compile(
    r"(?<![cgst])i(?:a|o(?!u)|u)|eo|oe(?=[mt])|ua|uou|uity"
    r"|(?<=[^aeiou])ie(?:n|t)|eat(?=e|i)|[aeiou]ing$"
)
_SILENT = re.compile(
    r"(?<=[^aeiouy])e$(?<![bcdfgkpstz]le)|(?<=[^aeiouytd])ed$|(?<=[^aeioucgsxz])(?<!ch)(?<!sh)es$"
)


def is_emoji(char: str) -> bool:
    """Return whether a character is an emoji of Unicode, alone or with the selector behind it.

    >>> [is_emoji(char) for char in "😀❤⭐©a.é中"]
    [True, True, True, True, False, False, False, False]
    """
    return _EMOJI.fullmatch(char) is not None


_EMOJI = re.compile(
    "[\u00a9\u00ae\u203c\u2049\u2122\u2139\u2194-\u21aa\u231a\u231b\u2328\u23cf\u23e9-\u23fa\u24c2\u25aa-\u25fe"
    "\u2600-\u27bf\u2934\u2935\u2b05-\u2b55\u3030\u303d\u3297\u3299\U0001f000-\U0001faff]"
)
