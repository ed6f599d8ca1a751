r"""Hostile answers of our own, by family: what hangs, grows, crashes or tricks graders. None may count.

A row is (gold, answer). "5" is the usual gold answer, so that what can be read as 5 against the rules
would be seen. Families with a size are listed at several sizes.
"""

from collections.abc import Iterator

Row = tuple[str, str]


def rows() -> list[Row]:
    """Return all rows, without repeats."""
    families = (towers, numbers, brackets, powers, functions, calculus, hedges, chains, prose, signs, code)
    return list(dict.fromkeys(row for family in (*families, lists, others) for row in family()))


def _texts(table: str) -> list[str]:
    return [text.strip() for text in table.split(";;")]


def towers() -> Iterator[Row]:
    for base in ("2", "5", "9", "10", "x", "n"):
        for depth in (2, 3, 4, 8, 30):
            yield "5", "^{".join([base] * (depth + 1)) + "}" * depth
            yield "5", "^".join([base] * (depth + 1))
    yield "5", "9**9**9**9"
    yield "x", r"\left(9^{9}\right)^{9^{9}}"
    yield "x+1", "((((2^{99})^{99})^{99})^{99})^{99}"
    yield "x+1", "10^{9999}!"


def numbers() -> Iterator[Row]:
    for digits in (61, 500, 5000, 200_000):
        yield "5", "5" * digits
        yield "5", "5." + "0" * digits + "1"
        yield "5", "1/" + "3" * digits
    for text in ("1e999", "5e-9999", "1e99999999", "0x5", "5j", "5_0", "５", "٥"):
        yield "5", text
    for text in ("5\x00", "\u202e5", "\u200b5", "5\u0301"):
        yield "5", text
    for text in ("nan", "inf", "-inf", r"\infty", "1/0", "0/0", "5/0", r"\frac{5}{0}", "0^{-1}", "0^0"):
        yield "5", text
    for text in ("5000!", "1000000!", "99999999999!", "3!!!", "9!!", "((9!)!)!", r"\Gamma(10^9)"):
        yield "6", text
    for n in (10_000, 10**6, 10**9):
        yield "5", rf"\binom{{{n}}}{{{n // 2}}}"
        yield "5", rf"{n}^{{{n}}} \bmod 7"


def brackets() -> Iterator[Row]:
    for depth in (10, 14, 15, 50, 400):
        for opening, closing in ("()", "[]", "{}"):
            yield "x+1", opening * depth + "5" + closing * depth
        yield "x+1", r"\sqrt{" * depth + "2" + "}" * depth
        yield "x+1", r"\frac{1}{1+" * depth + "1" + "}" * depth
        yield "x+1", "(" * depth
        yield "x+1", r"\left(" * depth + "x" + r"\right)" * depth
        yield "x+1", "|" * depth + "x" + "|" * depth
    yield "5", "{" * 100_000
    yield "5", r"\boxed{" * 5000
    yield "5", r"1\over " * 2000


def powers() -> Iterator[Row]:
    for n in (9, 20, 40, 41, 200, 99_999):
        yield "x+1", f"(a+b+c+d+e)^{{{n}}} < 1"
        yield "x+1", f"(a+b+c+d+e)^{{{n}}}"
        yield "x < 1", f"(a+b)^{{{n}}}(c+d)^{{{n}}} < 1"
    yield "x < 1", "x^x + x^{x+1} < 1"
    yield "(-\\infty,0)", r"\sin(x^x)+x > 0 \text{ or } \tan(x)<x^5"
    yield "x=1", "x^{9}+x^{8}-3x^{7}+x-17=0"


def functions() -> Iterator[Row]:
    for name in ("sin", "cos", "tan", "log", "exp", "sqrt"):
        yield "x+1", rf"\{name}(" * 9 + "x" + ")" * 9
        yield "x+1", "+".join(rf"\{name}({k}x)" for k in range(20))
        yield "x < 1", rf"\{name}(x)+\{name}(2x)\{name}(3x) < \{name}(x)^{{7}}"
    for text in (r"\sin(10^{5000})", r"\exp(\exp(\exp(9)))", r"\tan(\tan(\tan(10^{90})))", r"\log_{1}(5)"):
        yield "5", text


def calculus() -> Iterator[Row]:
    for text in _texts(r"""
\int_0^1 5 dx ;; \int_0^5 1\,dx ;; \sum_{k=1}^{5} 1 ;; \sum_{k=1}^{10^9} k^k ;; \lim_{x \to 5} x ;;
\lim_{x\to 0}\frac{\sin 5x}{x} ;; \frac{d}{dx} 5x ;; \iiint x^y dx dy dz ;; \oint 5 ;; \max(1,5) ;;
\sup\{x : x < 5\}
"""):
        yield "5", text
    yield "120", r"\prod_{k=1}^{5} k"
    yield "-2", r"\det\begin{pmatrix}1&2\\3&4\end{pmatrix}"


def hedges() -> Iterator[Row]:
    for text in _texts(r"""
3 or 5 ;; 5 or 3 ;; 5, 6 ;; 5;6 ;; 5 \text{ or } 6 ;; 5 and 6 ;; 5/6 or 5 ;; \{5,6\} ;; (5,6) ;;
[5,6] ;; 5 \pm 1 ;; \pm 5 ;; 5|6 ;; 5 5 6 ;; 4.9-5.1 ;; 5-6 ;; 5 to 6 ;; between 4 and 6 ;; 5 or more ;;
~5 or 6
"""):
        yield "5", text
    for text in ("x+1 or x+2", "x+1, x+2", r"x+1 \lor x+2", "x+1;x", r"\{x+1,x+2\}", r"x+1\pm 1"):
        yield "x+1", text
    for text in ("A or B", "A, B", "AB", "A/B", "A and B", "(A)(B)", "A B"):
        yield "A", text


def chains() -> Iterator[Row]:
    for text in _texts(r"""
7=5 ;; 5=7 ;; 1=2=3=5 ;; x=7=5 ;; 5=6=5 ;; 2+2=5 ;; x=4=5 ;; 5=4 ;; 0=5 ;; 5=0 ;; 1=5=2 ;;
y=5=x+1=9
"""):
        yield "5", text
    for text in ("x=x+1", "x+1=x", "x+1=x+2", "y=x+2=x+1", "f(x)=x=x+1"):
        yield "x+1", text
    yield "5", "x<5"
    yield "5", r"x \neq 5"
    yield "5", r"x \ge 5"
    yield "x < 5", "5"


def prose() -> Iterator[Row]:
    for text in _texts(r"""
not 5 ;; the answer is 5 ;; 5 is not the answer ;; anything but 5 ;; it is 5 ;; minus 5 ;;
5 squared ;; half of 5 ;; 5 or so ;; one less than 5 ;; more than 5 ;; 5 minus 1 ;; I say 5 ;;
5 if lucky ;; \text{the answer is } 5 ;; \text{five or six} ;; 5 \text{ or not} ;; maybe 5 ;;
5 times pi ;; 5 choose 2 ;; 5 mod 3 ;; negative 5
"""):
        yield "5", text
    for text in ("not odd", "odd or even", "even", "oddd", "od", "neither odd nor even", "odd even"):
        yield "odd", text


def signs() -> Iterator[Row]:
    for text in _texts(r"""
5t ;; 5x ;; 5e ;; 5i ;; x5 ;; 5^2 ;; -5 ;; --5 ;; +-5 ;; 5+ ;; 5- ;; *5 ;; /5 ;; 5/ ;; 5^ ;; ^5 ;;
5:1 ;; 5&6 ;; 5\\6 ;; 5_6 ;; 5# ;; 5@ ;; 5? ;; 5\frac ;; \frac{5} ;; \frac{5}{ ;; }5{ ;; {5 ;; 5} ;; )5( ;;
$5$6$ ;; 5 \approx 5 ;; \neg 5 ;; \overline{5}5 ;; 5\cdot ;; 5 \times ;; 5 \to 6 ;; \lnot 5 ;; 5^{\prime}2
"""):
        yield "5", text


def code() -> Iterator[Row]:
    for text in _texts(r"""
__import__("os").system("true") ;; ().__class__.__bases__[0] ;; lambda: 5 ;; exec('5') ;;
eval('5') ;; open('/etc/passwd') ;; print(5) ;; os.system('5') ;; 5 if 1 else 6 ;;
[5 for _ in range(9)] ;; int('5') ;; 5;import os ;; `5`+1 ;; $(5)+$(1) ;; \input{/etc/passwd} ;;
\def\x{5}\x ;; \newcommand{\x}{5}\x ;; \write18{true} ;; {{5*1+1}} ;; <script>5</script> ;; 5<!--
"""):
        yield "5", text


def lists() -> Iterator[Row]:
    for n in (65, 200, 3000):
        yield "5", ",".join(["5"] * n)
        yield "(1,2)", "(" + ",".join(str(k) for k in range(n)) + ")"
        yield "1,2,3", ",".join(f"\\sqrt{{{k}}}" for k in range(n))
        yield "5", r"\begin{pmatrix}" + "&".join(["1"] * n) + r"\end{pmatrix}"
    yield "(1,2)", "(2,1)"
    yield "(1,2)", "(1,2),(2,1)"
    yield "(1,2)", "(1,2,3)"
    yield "(0,1)", "[0,1]"
    yield "1,2", "1,2,3"
    yield "1,2,3", "1,2"
    yield r"\{1,2\}", "1"
    yield "12_5", "12_7"
    yield r"\begin{pmatrix}1\\2\end{pmatrix}", r"\begin{pmatrix}2\\1\end{pmatrix}"


def others() -> Iterator[Row]:
    yield r"\frac{100}{3}", "33.333333"
    yield r"\pi", "3.14159265358979"
    yield r"\sqrt{2}", "1.4142135623730951"
    yield "0", "10^{-9000}"
    yield "0.5", r"50\%"
    yield r"50\%", "0.5"
    yield "5 m", "5 cm"
