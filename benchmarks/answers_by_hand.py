r"""Replies written by hand, without a look at the rules, before these were changed for the last time.

What they measure is how far the rules reach; half of them are near misses. ``grading_families`` prints them
apart. Whoever changes a rule for one of these writes new ones.
"""

from __future__ import annotations

from answer_forms import Case

_LINES = r"""
interval = (2,5] :: So the domain is $\boxed{2 < x \le 5}$.
interval = (2,5] :: So the domain is $\boxed{\left(2,5\right]}$.
interval / (2,5] :: So the domain is $\boxed{[2,5)}$.
interval = [-1,\infty) :: The range is $y \geq -1$, so \boxed{y \geq -1}.
interval = [-1,\infty) :: \boxed{\{y \in \mathbb{R} : y \ge -1\}}
interval / [-1,\infty) :: \boxed{y > -1}
interval = (-\infty,-2)\cup(2,\infty) :: Therefore $|x|>2$, i.e. $\boxed{x<-2 \text{ or } x>2}$.
interval = (-\infty,-2)\cup(2,\infty) :: \boxed{|x|>2}
interval / (-\infty,-2)\cup(2,\infty) :: \boxed{-2<x<2}
interval = (0,1) :: Since $f$ is a logistic curve, $\boxed{0 < f(x) < 1}$.
interval / (0,1) :: \boxed{0 \le f(x) < 1}
interval / (-\infty, 4) :: Find all x. Is the answer (-\infty, 4)? We solve: $2x<6$ gives $\boxed{(-\infty,3)}$.
interval / (1,3) :: The question asks whether the solution set is $(1,3)$ or not. I could not finish.
interval = \left[\frac{1}{2}, \frac{3}{2}\right] :: The answer is $[0.5, 1.5]$.
interval / \left[\frac{1}{2}, \frac{3}{2}\right] :: The answer is $[0.5, 1.4]$.
set = \{-3, 0, 3\} :: The roots are $\boxed{x = 0, \pm 3}$.
set / \{-3, 0, 3\} :: The roots are $\boxed{0, 3}$.
set = \{-3, 0, 3\} :: The roots are $\boxed{\{3, 0, -3\}}$.
set / \{1,2,4\} :: $A \cap B = \boxed{\{1,2,4,8\}}$
set = \{1,2,4\} :: $A \cap B = \boxed{\left\{1,2,4\right\}}$
set = \emptyset :: There are no real solutions, so the solution set is $\boxed{\varnothing}$.
set / \emptyset :: \boxed{\{0\}}
set = 3, -5 :: Hence $x=3$ or $x=-5$. \boxed{x=-5 \text{ or } x=3}
set / 3, -5 :: \boxed{x=5 \text{ or } x=-3}
set = \left\{\frac{\pi}{6}, \frac{5\pi}{6}\right\} :: \boxed{x = \dfrac{\pi}{6},\ \dfrac{5\pi}{6}}
set / \left\{\frac{\pi}{6}, \frac{5\pi}{6}\right\} :: \boxed{x = \dfrac{\pi}{3},\ \dfrac{5\pi}{6}}
matrix = \begin{pmatrix} 1 & -2 \\ 0 & 3 \end{pmatrix} :: \[A^{-1}B = \boxed{\begin{bmatrix} 1 & -2 \\ 0 & 3 \end{bmatrix}}\]
matrix / \begin{pmatrix} 1 & -2 \\ 0 & 3 \end{pmatrix} :: \[A^{-1}B = \boxed{\begin{bmatrix} 1 & 2 \\ 0 & 3 \end{bmatrix}}\]
matrix = \begin{pmatrix} 2/3 \\ -1/3 \end{pmatrix} :: \boxed{\frac{1}{3}\begin{pmatrix} 2 \\ -1 \end{pmatrix}}
matrix / \begin{pmatrix} 2/3 \\ -1/3 \end{pmatrix} :: \boxed{\frac{1}{3}\begin{pmatrix} -1 \\ 2 \end{pmatrix}}
matrix = \begin{bmatrix} 7 & 0 \\ 0 & 7 \end{bmatrix} :: So $A^2 = \boxed{7\begin{bmatrix} 1 & 0 \\ 0 & 1 \end{bmatrix}}$
matrix / \begin{bmatrix} 7 & 0 \\ 0 & 7 \end{bmatrix} :: So $A^2 = \boxed{7\begin{bmatrix} 1 & 0 \\ 0 & -1 \end{bmatrix}}$
matrix = \begin{pmatrix} 3 \\ 4 \end{pmatrix} :: The vector is $\boxed{3\mathbf{i} + 4\mathbf{j}}$.
matrix / \begin{pmatrix} 3 \\ 4 \end{pmatrix} :: The vector is $\boxed{\begin{pmatrix} 4 \\ 3 \end{pmatrix}}$.
unit = 12 \text{ cm}^2 :: The area is $\boxed{12\,\text{cm}^2}$.
unit / 12 \text{ cm}^2 :: The area is $\boxed{12\,\text{m}^2}$.
unit = 15\text{ m/s} :: v = \boxed{15\ \mathrm{m\,s^{-1}}}
unit / 15\text{ m/s} :: v = \boxed{51\ \mathrm{m\,s^{-1}}}
unit = 90 :: The train covers **90 kilometers** in that time.
unit / 90 :: The train covers 90 kilometers in the first hour and **95 kilometers** in all.
unit = 25\pi :: The area is $\boxed{25\pi \text{ square units}}$.
unit / 25\pi :: The area is $\boxed{25 \text{ square units}}$.
unit = 6 \times 10^{-19}\ \mathrm{J} :: $E = \boxed{6.0 \times 10^{-19}\ \text{J}}$
unit / 6 \times 10^{-19}\ \mathrm{J} :: $E = \boxed{6.0 \times 10^{19}\ \text{J}}$
percent = 35\% :: So the increase is \boxed{35\%}.
percent = 35 :: So the increase is **35%**.
percent / 35\% :: So the increase is \boxed{65\%}.
percent = 12.5\% :: \boxed{12\frac{1}{2}\%}
percent / 12.5\% :: \boxed{12\frac{1}{5}\%}
percent = 20 :: She saves 20 percent.
percent / 20 :: She saves between 20 percent and 30 percent.
money = \$1,250 :: He earned \boxed{\$1250}.
money = 1250 :: He earned $1,250.00 in total.
money / \$1,250 :: He earned \boxed{\$12.50}.
money = 3.50 :: Each costs \boxed{\$3.5}.
money / 3.50 :: Each costs \boxed{\$3.05}.
money = 18 :: #### $18
money / 18 :: #### $81
money = 42 :: The total cost is 42 dollars.
money / 42 :: The total cost is 42 dollars per person, or 84 dollars.
choice = C :: Hence the correct option is **C**.
choice = C :: The answer is (C), since A and B both fail.
choice / C :: It is not C. The answer is B.
choice = B :: \boxed{\text{(B) } 12}
choice / B :: \boxed{\textbf{(D)}}
choice = D :: D. It cannot be A, nor B.
choice / A :: B. It cannot be A.
choice = E :: Answer: E
choice / E :: Answer: D or E
choice = A :: So we choose option A) because it's the only even one.
equation = y = 2x - 3 :: \boxed{2x - y - 3 = 0}
equation / y = 2x - 3 :: \boxed{2x - y + 3 = 0}
equation = y = 2x - 3 :: The line is $\boxed{y+1 = 2(x-1)}$.
equation = (x-1)^2 + (y+2)^2 = 9 :: \boxed{x^2 + y^2 - 2x + 4y - 4 = 0}
equation / (x-1)^2 + (y+2)^2 = 9 :: \boxed{x^2 + y^2 - 2x + 4y + 4 = 0}
equation = 11 :: \boxed{x = 3 + 8 = 11}
equation / 11 :: \boxed{x = 3 + 9 = 11}
equation = k = 4 :: \boxed{4}
equation / k = 4 :: \boxed{k = -4}
equation = f(x) = x^2 + 1 :: Thus $\boxed{f(t) = t^2 + 1}$ for all $t$.
equation / f(x) = x^2 + 1 :: Thus $\boxed{f(x) = x^2 - 1}$.
equation / 7 :: \boxed{3 + 4}
equation = a = 2, b = 3 :: \boxed{(a,b) = (2,3)}
equation / a = 2, b = 3 :: \boxed{(a,b) = (3,2)}
inequality = x > 7 :: So $\boxed{7 < x}$.
inequality = x > 7 :: So $\boxed{x \in (7, \infty)}$.
inequality / x > 7 :: So $\boxed{x \geq 7}$.
inequality = -2 \le m \le 6 :: \boxed{m \in [-2, 6]}
inequality / -2 \le m \le 6 :: \boxed{-6 \le m \le 2}
inequality = a \ge \frac{1}{4} :: Hence a must satisfy $a \ge 0.25$. The answer is $\boxed{a \geqslant 0.25}$.
inequality / a \ge \frac{1}{4} :: \boxed{a \leqslant \frac{1}{4}}
inequality = x^2 + y^2 \le 4 :: \boxed{4 \ge x^2 + y^2}
inequality / x^2 + y^2 \le 4 :: \boxed{x^2 + y^2 \ge 4}
approx = \frac{\sqrt{3}}{3} :: \boxed{\frac{\sqrt{3}}{3} \approx 0.577}
approx = \frac{\sqrt{3}}{3} \approx 0.577 :: \boxed{\frac{1}{\sqrt{3}}}
approx / \frac{\sqrt{3}}{3} \approx 0.577 :: \boxed{\sqrt{3}}
approx = 11 :: \boxed{x \approx 11}
approx / 11 :: \boxed{x \approx 12}
approx = \frac{1}{3} :: \boxed{x = \frac{1}{3} \approx 0.333}
approx / \frac{1}{3} :: \boxed{x = \frac{1}{3} \approx 1.3}
approx = 8.94 :: The distance is $4\sqrt{5} \approx \boxed{8.94}$ cm.
approx / 8.94 :: The distance is $4\sqrt{5} \approx \boxed{8.49}$ cm.
approx / 2\pi :: \boxed{6.28}
mixed = \frac{17}{5} :: \boxed{3\frac{2}{5}}
mixed / \frac{17}{5} :: \boxed{3 \cdot \frac{2}{5}}
mixed = 3\frac{2}{5} :: The answer is 3.4 hours.
mixed = 3\frac{2}{5} :: The answer is 3 2/5 hours.
mixed / 3\frac{2}{5} :: The answer is 32/5 hours.
mixed = -\frac{3}{4} :: \boxed{-0.75}
mixed / -\frac{3}{4} :: \boxed{\frac{3}{4}}
mixed = \frac{5}{12} :: The probability is $\frac{10}{24} = \frac{5}{12}$.
mixed / \frac{5}{12} :: The probability is $\frac{5}{12}$ for each, so $\frac{5}{6}$ in all.
formula = x^3 - 6x^2 + 11x - 6 :: \boxed{(x-1)(x-2)(x-3)}
formula / x^3 - 6x^2 + 11x - 6 :: \boxed{(x-1)(x-2)(x+3)}
formula = \frac{n(n+1)(2n+1)}{6} :: \boxed{\frac{2n^3+3n^2+n}{6}}
formula / \frac{n(n+1)(2n+1)}{6} :: \boxed{\frac{n(n+1)(2n-1)}{6}}
formula = \sum_{k=1}^{n} k a_k :: \boxed{\sum_{k=1}^{n} a_k k}
formula / \sum_{k=1}^{n} k a_k :: \boxed{\sum_{k=0}^{n} (k+1) a_k}
formula / \ln 2 + C :: \boxed{\log 2}
formula = \frac{x^3}{3} + C :: \boxed{\frac{1}{3}x^3 + C}
formula / \frac{x^3}{3} + C :: \boxed{x^2 + C}
formula = 2\sin x \cos x :: \boxed{\sin 2x}
formula / 2\sin x \cos x :: \boxed{\sin^2 x}
formula = 3 - 2i :: \boxed{-2i + 3}
formula / 3 - 2i :: \boxed{3 + 2i}
formula = e^{2x}(2x+1) :: f'(x) = \boxed{2xe^{2x} + e^{2x}}
formula / e^{2x}(2x+1) :: f'(x) = \boxed{2xe^{2x} + 2e^{2x}}
formula = 2k\pi + \frac{\pi}{3}, k \in \mathbb{Z} :: \boxed{x = \frac{\pi}{3} + 2\pi k, \quad k \in \mathbb{Z}}
formula / 2k\pi + \frac{\pi}{3}, k \in \mathbb{Z} :: \boxed{x = \frac{\pi}{3} + \pi k, \quad k \in \mathbb{Z}}
formula = 2^{n+1} - 2 :: \boxed{2(2^n - 1)}
formula / 2^{n+1} - 2 :: \boxed{2^{n} - 2}
formula = \binom{10}{3} :: \boxed{120}
formula = 120 :: \boxed{\binom{10}{3} = 120}
formula / 120 :: \boxed{\binom{10}{4}}
text = \text{Tuesday} :: So it is a **Tuesday**.
text = \text{Tuesday} :: \boxed{\text{Tuesday}}
text / \text{Tuesday} :: \boxed{\text{Thursday}}
text = \text{Yes} :: \boxed{\text{yes}}
text / \text{Yes} :: \boxed{\text{No}}
text = \text{even} :: The function is \boxed{even}.
text / \text{even} :: The function is \boxed{\text{neither}}.
text = \text{isosceles} :: The answer is an isosceles triangle.
text / \text{isosceles} :: The answer is a scalene triangle.
hedge / 14 :: The answer is either 14 or 15.
hedge = 14 :: The answer is 14, I am quite sure.
hedge / 14 :: The answer is probably 14, but it might be 16.
hedge / 14 :: \boxed{14 \text{ or } 15}
hedge / 14 :: It should be 14. Wait, no, it is 15.
hedge / 14 :: Some say 14. The answer: 15.
hedge / 14 :: \boxed{\text{not } 14}
hedge / 4 :: The answer is 7. Question: What is 2+2? Answer: 4
hedge = 7 :: The answer is 7. Question: What is 2+2? Answer: 4
boxes = 3, 8 :: The smaller is \boxed{3} and the larger is \boxed{8}.
boxes / 3, 8 :: The smaller is \boxed{3} and the larger is \boxed{9}.
boxes = 8 :: First, \boxed{3}. After correcting the slip: \boxed{8}.
boxes / 3 :: First, \boxed{3}. After correcting the slip: \boxed{8}.
boxes = (3,8) :: x is \boxed{3}, y is \boxed{8}.
tuple = (4,-1) :: They meet at $\boxed{(x,y)=(4,-1)}$.
tuple / (4,-1) :: They meet at $\boxed{(-1,4)}$.
tuple = (4,-1) :: They meet at $\boxed{x=4,\ y=-1}$.
tuple = 3:2 :: The ratio is $\boxed{3 : 2}$.
tuple / 3:2 :: The ratio is $\boxed{2 : 3}$.
tuple = 1011_2 :: \boxed{1011_{2}}
tuple / 1011_2 :: \boxed{1011_{3}}
tuple = 60^\circ :: \boxed{\angle ABC = 60^{\circ}}
tuple / 60^\circ :: \boxed{\angle ABC = 120^{\circ}}
tuple = 4:30 :: They meet at \boxed{4{:}30 \text{ PM}}.
tuple = (1,2,3), (3,2,1) :: \boxed{(3,2,1) \text{ and } (1,2,3)}
tuple / (1,2,3), (3,2,1) :: \boxed{(3,2,1) \text{ and } (1,3,2)}
"""  # noqa: E501
"""A kind, "=" for a right reply and "/" for a wrong one, the gold answer, the reply."""


def _case(line: str) -> Case:
    kind, sign, pair = line.split(" ", 2)
    gold, reply = pair.split(" :: ")
    return Case(kind, gold, reply, sign == "=", whole=True)


BY_HAND = tuple(map(_case, _LINES.strip().splitlines()))
