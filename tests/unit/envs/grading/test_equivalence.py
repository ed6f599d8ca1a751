r"""What the principles of docs/grading.md say of each kind of answer: other ways to write it, near misses.

A near miss is a sign, a bracket, a unit, a bound, a letter or a word away.
"""

import pytest

from envs import Grader


def _pairs(table: str) -> list[tuple[str, ...]]:
    """Return the pairs of a table: a gold answer and an answer with :: between, and ;; behind."""
    return [tuple(text.strip() for text in pair.split("::")) for pair in table.split(";;")]


SAME = _pairs(r"""
120 :: 5! = 120 ;; 120 :: 5! = 5\cdot 4\cdot 3\cdot 2\cdot 1 = 120 ;; 2x :: \frac{dy}{dx} = 2x ;;
30 :: \angle ABC = 30^\circ ;; 30^\circ :: m\angle ABC = 30 ;; 30^\circ :: ∠ABC = 30° ;;
\angle ABC :: \angle ABC ;; \angle ABC :: ∠ABC ;; \angle ABC :: \angle CBA ;;
\begin{cases} x=1 \\ y=2 \end{cases} :: x=1, y=2 ;; (1,2) :: \begin{cases} x=1 \\ y=2 \end{cases} ;;
\begin{cases} x^2 & x>0 \\ 0 & x\le 0\end{cases} ::
\begin{cases} x^2 & \text{if } x>0, \\ 0 & \text{if } x\leq 0 \end{cases} ;;
\begin{cases} x^2 & x>0 \\ 0 & x\le 0\end{cases} :: \begin{cases} 0, & x \leq 0 \\ x^2, & 0<x \end{cases} ;;
\begin{pmatrix}1\\2\end{pmatrix} :: (1,2) ;; \begin{pmatrix}1\\2\end{pmatrix} :: \langle 1, 2\rangle ;;
\langle 1,2,3\rangle :: (1,2,3) ;; \langle 1,2\rangle :: \begin{bmatrix}1\\2\end{bmatrix} ;;
3\mathbf{i}+4\mathbf{j} :: 3\hat{i}+4\hat{j} ;; \begin{pmatrix}1&2\\3&4\end{pmatrix} :: [[1,2],[3,4]] ;;
7:32 :: 7:32 ;; 3:2 :: 3 : 2 ;; 3:2 :: \frac{3}{2} ;; 3:2 :: 6:4 ;; 101_2 :: 101_{2} ;;
101_2 :: 101_{\text{two}} ;; 101_2 :: (101)_2 ;; 101_2 :: 101_{(2)} ;; 0.1\overline{6} :: \frac16 ;;
\frac{1}{6} :: 0.1\bar{6} ;; \frac13 :: 0.(3) ;; \frac{1}{3} :: 0.\dot{3} ;; \frac13 :: 0.333... ;;
2,3 :: 2 and 3 ;; 2,3 :: x=2 or x=3 ;; 2,3 :: \{2,3\} ;; 2,3 :: {2, 3} ;; -2,2 :: \pm 2 ;; -2,2 :: x = ±2 ;;
\pm\sqrt{3} :: \sqrt3, -\sqrt3 ;; n=1,2,3 :: 1,2,3 ;; x=2,y=3 :: (x,y)=(2,3) ;; (2,3) :: x=2 and y=3 ;;
10\% :: 10% ;; 10 :: 10 percent ;; 1.5\times 10^{-3} :: 0.0015 ;; 1500 :: 1.5e3 ;; 5 :: 5.00 ;;
\$5.00 :: 5 ;; 5 USD :: \$5 ;; €5 :: 5 euros ;; 5 :: ¥5 ;; 5 :: 5元 ;; 5 :: Rs. 5 ;; 1200 :: Rs 1,200 ;;
5 :: 5 yuan ;; 120 :: 120 cm^3 ;; 120 :: 120\ \mathrm{cm}^{3} ;; 120 :: 120\text{ cubic centimeters} ;;
9.8 :: 9.8\ \mathrm{m\,s^{-2}} ;; 9.8 :: 9.8 m s^-2 ;; 60 :: 60 km/h ;;
60 :: 60\,\text{km}\cdot\text{h}^{-1} ;; 5 :: 5 kg m/s ;; 100 :: 100\ \Omega ;; 25 :: 25 ^{\circ}C ;;
300 :: 300 K ;; 3 :: 3 mol ;; -5 :: negative five ;; -\frac12 :: minus one half ;;
-\frac34 :: negative three fourths ;; 5 :: five ;; 0.5 :: one half ;;
0.5 :: a half ;; 1000000 :: one million ;; 2500000 :: 2.5 million ;;
\mathbb{R} :: all real x ;; \mathbb{R} :: x can be any real number ;;
\emptyset :: no solution exists ;; \emptyset :: There are no solutions ;; \text{no solution} :: none ;;
\text{None} :: none ;; no solutions :: \emptyset ;; x>3 :: 3<x ;; [3,\infty) :: x\ge3 ;; (1,3) :: ]1;3[ ;;
[1,3] :: [1;3] ;; (-\infty,1]\cup[2,\infty) :: x\le1 or x\ge2 ;; (1,5) :: (1,3)\cup[3,5) ;;
(0,1)\cup(1,2) :: (0,2)\setminus\{1\} ;; x\ne 1 :: \{x|x\ne1\} ;; \{x\in\mathbb{R}: x\neq 2\} :: x \ne 2 ;;
|x|\le 1 :: -1\le x\le 1 ;; x\geq 2 :: x\ge 2, x\in\mathbb{R} ;; 1\le x\le 3 :: x\ge 1, x\le 3 ;;
(-\infty,1)\cup(3,\infty) :: x<1, x>3 ;; y=2x+1 :: y = 1+2x ;; y=2x+1 :: 2x - y + 1 = 0 ;; 2x+1 :: y=2x+1 ;;
y=2x+1 :: f(x)=2x+1 ;; y=\frac{1}{2}x+3 :: x-2y=-6 ;; x=3 :: x=3.0 ;; x=3 :: 3 ;; 3 :: x=3 ;; 3 :: m=3 ;;
x^2+y^2=25 :: x^{2}+y^{2}-25=0 ;; \frac{x^2}{4}+\frac{y^2}{9}=1 :: 9x^2+4y^2=36 ;;
y^2=4x :: x=\frac{y^2}{4} ;; \frac{\sqrt{3}}{3} :: \frac{1}{\sqrt3} ;; 2\sqrt{2} :: \sqrt8 ;;
\sqrt[3]{2} :: 2^{1/3} ;; \frac{1+\sqrt5}{2} :: (1+√5)/2 ;; e^2 :: \mathrm{e}^2 ;; \ln 2 :: ln(2) ;;
\log_2 3 :: \frac{\log 3}{\log 2} ;; \log_{10} 5 :: \lg 5 ;; i :: \mathrm{i} ;; 1+i :: 1 + 1i ;;
2i :: 2\cdot i ;; -i :: 0-i ;; n! :: n! ;; \binom{5}{2} :: 10 ;; 10 :: \binom52 ;; 10 :: {5\choose2} ;;
10 :: \dbinom{5}{2} ;; 120 :: 5! ;; x^2+C :: x^2+C ;; \frac{x^3}{3}+C :: \frac13x^3+C ;;
\sin^2 x :: (\sin x)^2 ;; \sin^{-1}x :: \arcsin x ;; \arctan 2 :: \tan^{-1}(2) ;; f^{-1}(x) :: f^{-1}(x) ;;
3 :: \lim_{x\to0}\frac{\sin 3x}{x}=3 ;; 6 :: \det(A)=6 ;; 6 :: \det A = 6 ;; 55 :: \sum_{k=1}^{10}k=55 ;;
\frac13 :: \int_0^1x^2\,dx=\frac{1}{3} ;; \frac{1}{3} :: P(A)=\frac13 ;; 2 :: \max f = 2 ;;
2 :: f_{\max}=2 ;; 5 :: |AB|=5 ;; 5 :: AB = 5 ;; 5 :: \overline{AB}=5 ;; 12 :: S_{\triangle ABC}=12 ;;
12 :: [ABC]=12 ;; 12 :: \text{Area} = 12 ;; 12 :: \text{Area of } ABC = 12 ;; 7 :: a+b=7 ;;
7 :: m+n = 3+4 = 7 ;; 7 :: x_1+x_2=7 ;; 2 :: \frac{AB}{CD}=2 ;; 45^\circ :: 45 degrees ;;
12\pi :: 12\pi\approx 37.7 ;; 37.7 :: 12\pi\approx37.7 ;; 12\pi :: 12 \pi \text{ square units} ;;
12\pi :: 12\pi\ \mathrm{cm}^2 ;; \text{(A)} :: A ;; \text{even} :: even ;; \text{Yes} :: yes ;;
Monday :: \text{Monday} ;; \text{June 20} :: June 20 ;; \text{parabola} :: a parabola ;;
\text{ellipse} :: an ellipse ;; A :: (A) ;; AB :: BA ;; 4:30 :: 4:30 ;; \frac{3}{4} :: 3⁄4 ;; x^2 :: x² ;;
\frac12 :: ½ ;; 5 :: \boxed{\boxed{5}} ;; 5 :: \displaystyle 5 ;;
\frac12 :: \frac{\displaystyle 1}{\displaystyle 2} ;; 5 :: {\large 5} ;; 5 :: \mbox{5} ;;
5 :: \underline{\underline{5}} ;; 5 :: \phantom{x}5 ;; 5 :: 5\;\; ;; 5 :: 5~ ;; x+y :: {x+y} ;;
\frac{a}{b} :: a/b ;; \frac{a}{b} :: a\div b ;; 2x :: 2*x ;; 2x :: 2\,x ;; (x+1)(x-1) :: x^2-1 ;;
\frac{1}{x+1} :: 1/(x+1) ;; x^{-1} :: 1/x ;; 1,2,3 :: 3, 2, and 1 ;; \{1,2,3\} :: {3,1,2} ;;
(1,2),(3,4) :: (3,4) and (1,2) ;; (1,2),(3,4) :: \{(1,2),(3,4)\} ;; x=1 :: 1 ;; 1 :: x=1 ;;
\frac{1}{2}, \frac13 :: 1/3, 1/2 ;; A,B :: A and B ;; -3\frac12 :: -3.5 ;; 3\frac{1}{2} :: 3½ ;;
3 1/2 :: 7/2 ;; \sum_{k=1}^{n} k a_k :: \sum_{i=1}^{n} a_i i ;;
\prod_{i=1}^{n} (i+x) :: \prod_{k=1}^{n} (x+k) ;; \lim_{x\to 0} x f(x) :: \lim_{t\to 0} f(t) t ;;
\int_0^1 x f(x)\,dx + n :: n + \int_0^1 f(t) t\,dt ;;
F_n = \sum_{k=0}^{n-1} F_k F_{n-k-1} :: F_n = \sum_{k=0}^{n-1} F_{n-k-1} F_k ;; 0<f(x)<1 :: (0,1) ;;
(0,1) :: 0 < f(x) < 1 ;; (1,3) :: {1,3} ;; 1000.99 :: 1,000.99$ ;; \$5 :: 5$ ;; 105 :: (35 + 70 = 105) ;;
\frac{\sqrt3}{3} \approx 0.577 :: \frac{1}{\sqrt3} ;;
\frac{\sqrt3}{3} \approx 0.577 :: \frac{\sqrt3}{3} \approx 0.58 ;; \frac{2}{3} :: {2}/{3} ;;
\frac{2}{3} :: 2/3 ;; x=\frac{2}{3} :: \frac23 ;; \frac{2\sqrt{3}}{3} :: \frac{2}{\sqrt{3}} ;;
2^{10} :: 1024 ;; 1024 :: 2^{10} ;; x = 2k\pi :: 2\pi k ;; |x|>1 :: x<-1 or x>1 ;;
[0,\infty) :: x\geqslant 0 ;; \{0\} :: x=0 ;; x=0 :: \{0\} ;; \text{Yes} :: Yes. ;; \text{(B)} :: \text{B} ;;
3\pi \text{ cm}^3 :: 3\pi ;; \$1{,}234.50 :: 1234.5 ;; 1,234,567 :: 1234567 ;;
\frac{\pi}{2}+2\pi n :: 2\pi n + \frac\pi2 ;; a^2-b^2 :: (a-b)(a+b) ;; \ln\frac{a}{b} :: \ln a - \ln b ;;
\tan^{-1}\frac12 :: \arctan(0.5) ;; n=2k :: 2k ;; \frac{n(n+1)}{2} :: \frac12 n(n+1) ;; n^2+n :: n(n+1) ;;
-\frac{1}{2} :: -1/2 ;; -\frac{1}{2} :: \frac{-1}{2} ;; -\frac{1}{2} :: \frac{1}{-2} ;;
\left(\frac{1}{2}, 3\right) :: (0.5,3) ;; \left\{1,2\right\} :: \{2,1\} ;; x^2 - 5x + 6 :: (x-2)(x-3) ;;
30\text{ minutes} :: 30 min ;; 16\pi :: \pi 16 ;; 1 - \frac{1}{e} :: \frac{e-1}{e} ;;
\frac{1}{1+e^{-x}} :: \frac{e^x}{e^x+1} ;; \sqrt{a^2+b^2} :: (a^2+b^2)^{1/2} ;;
\overline{AB} \parallel \overline{CD} :: \overline{AB}\parallel\overline{CD} ;;
\triangle ABC :: \triangle ABC ;; x\in(0,1) :: 0<x<1 ;; m\le -1 :: (-\infty,-1] ;; a>2 :: (2,+\infty) ;;
k \ne 0 :: k<0 or k>0 ;; \begin{bmatrix}1&0\\0&1\end{bmatrix} :: I = \begin{bmatrix}1&0\\0&1\end{bmatrix} ;;
4x+3y-24=0 :: y=-\frac43x+8 ;; x=2 :: x=2 ;; y-3=2(x-1) :: y=2x+1 ;; \frac{x}{3}+\frac{y}{4}=1 :: 4x+3y=12 ;;
5050 :: 1+2+\cdots+100=5050 ;; 0 :: \lim_{n\to\infty}\frac1n=0 ;; e :: \lim_{n\to\infty}(1+\frac1n)^n = e ;;
\frac{1}{4} :: P = \frac{1}{4} = 0.25 ;; 0.25 :: \frac14 ;; 25\% :: 25 ;; 7 :: x = 7\text{ cm} ;; 7 :: 7.0 ;;
\infty :: +\infty ;; -\infty :: -\infty ;; \text{DNE} :: DNE ;; \text{does not exist} :: does not exist ;;
\text{undefined} :: undefined ;; F(2x) :: F(x+x) ;; P(1+r)^n :: P(r+1)^n ;; k(x^2-x-2) :: k(x-2)(x+1) ;;
\frac12 mv^2 :: \frac{1}{2}m(v^2) ;; T(n)=2T(n/2)+n :: T(n)=n+2T(\frac{n}{2}) ;; n(n+1) :: n^2+n ;;
\lfloor x \rfloor + 1 :: \lfloor x+1 \rfloor ;; v=(1,2) :: \vec{v}=(1,2) ;; 2\ln a+\ln b :: \ln(a^2b) ;;
x^{\ln y} :: y^{\ln x} ;; \frac{1}{\sqrt{x}} :: \sqrt{\frac{1}{x}} ;; \log_2 8 :: log_2(8) ;;
1/cosh(x) :: sech x ;; \arcsin\frac{1}{x} :: \operatorname{arccsc} x ;; \sinh x :: sinh(x) ;;
e^{i\pi/3} :: \operatorname{cis} 60^\circ ;; -\frac{\cos^2 x}{2}+C :: \frac{\sin^2 x}{2}+C ;;
\frac{\pi}{6}+2n\pi :: x=\frac{\pi}{6}+2n\pi,\ n\in\mathbb{Z} ;;
\Phi(x,y)=\frac{x+1}{2y} :: \Phi (x, y)=\frac{x}{2y}+\frac{1}{2y} ;;
\begin{matrix} x \\ 0.5 \end{matrix} :: \begin{matrix} x \\ \frac12 \end{matrix} ;;
The answer is 33. :: 33 ;; √12 :: 2\sqrt3 ;; AB=25 :: |AB|=25 ;; \cos(x)=\frac12 :: \cos (x)=0.5 ;;
\sqrt[3]{5}, -\sqrt[3]{5} :: y = \pm \sqrt[3]{5} ;; r=5 :: \text{radius}=5 ;; x=5 :: \text{value of }x = 5 ;;
\begin{pmatrix}\sqrt[3]{x}^2 & -\sin(x)\\\end{pmatrix} :: \begin{pmatrix}x^{2/3} & -\sin(x)\end{pmatrix} ;;
P(A\cap B)=0.5 :: P(B\cap A)=0.5 ;; P(A|B)=0.5 :: P(A \mid B)=0.5 ;; E(X)=3 :: \mathbb{E}[X]=3 ;;
2\text{ red}, 3\text{ blue} :: 3 blue and 2 red ;; f^{-1}(x)=x-3 :: f^{-1}(x)=-3+x ;; 5 :: 5 ;;
1200 :: 1,200 ;; 1200 :: $1,200.00 ;; 18 :: \$18 ;; 18 :: 18 dollars ;; 90^\circ :: 90 ;; 50 :: 50\% ;;
50\% :: 50 percent ;; \frac{1}{2} :: 0.5 ;; 0.50 :: 1/2 ;; \frac34 :: \dfrac{3}{4} ;; 2.5 :: 2 1/2 ;;
5/2 :: 2\frac{1}{2} ;; 5 :: x = 5 ;; 5 :: f(x)=5 ;; k=5 :: 5 ;; −3 :: -3 ;; 0.185 :: .185 ;; 5 :: 5. ;;
25 :: 025 ;; 2000000 :: 2 million ;; 1500 :: 1.5\times10^3 ;; 32349 :: 32,\! 349 ;; 14916 :: 14{,}916 ;;
evelyn :: \text{Evelyn} ;; \text{(C)} :: C ;; 4 :: \mbox{four} ;;
(x-2)(x+2) :: \left(x-2\right)\left(x+2\right) ;; 12\sqrt{3} :: 12\sqrt3 ;; x^2 + 1 :: x^{2}+1 ;;
\text{Mar 5} :: \text{mar 5} ;; \text{A1} :: A1 ;; A1 :: (A1) ;; A1 :: P = A1 ;; B12 :: B_{12} ;;
H_2O :: H2O ;; 5 :: \text{5 cm} ;; \text{2x-1} :: 2x-1 ;; 3ab :: 3ba ;; FACE_{16} :: FACE ;;
500000 :: 5 hundred thousand ;; 3000000 :: 3 millions ;; 5000000 :: 5 million dollars ;;
5000 :: 5 thousands of people ;; 24 :: 2 dozen eggs ;; 5 :: 5 more apples ;; 5 :: 5 in total ;;
60 miles per hour :: 60 mph ;; 5 \text{ meters per second} :: 5 m/s ;; 5 pounds :: 5 lb ;; 5 pounds :: £5 ;;
5 cm^2 :: 5 sq cm ;; 5 cubic feet :: 5 \text{ ft}^3 ;; 5 square meters :: 5 m² ;;
\sqrt{2} :: \sqrt{2} \text{ cm}^2 ;; 300 :: 3x10^2 ;; -5 :: −5 ;; 1.5 :: 1 ½ cups ;;
5\text{ cm}^2 :: 5 cm² ;; x \ge 2 :: 2 ≤ x ;; (0,\infty) :: x ∈ (0, ∞) ;;
105 :: one hundred and five ;; 2300 :: two thousand three hundred ;; 30 :: 30^\circ C ;;
86°F :: 86 degrees Fahrenheit ;; 2.5 :: two and a half ;; \approx 37.7 :: 37.7 ;; 5 :: \(5\) cm
""")
DIFFERENT = _pairs(r"""
\sum_{k=1}^{n} k a_k :: \sum_{k=1}^{n} k a_n ;; \sum_{k=1}^{n} k a_k :: \sum_{k=0}^{n} k a_k ;;
\sum_{k=1}^{n} k a_k :: \sum_{n=1}^{n} n a_k ;; \sum_{k=1}^{n} k + 1 :: \sum_{k=1}^{n} (k + 1) ;;
\int_0^1 \int_0^2 x y^2 \,dx\,dy :: \int_0^1 \int_0^2 x y^2 \,dy\,dx ;;
\lim_{x\to 0} f(x) :: \lim_{x\to 1} f(x) ;; \lim_{x\to 0} f(x) :: \lim_{x\to \infty} f(x) ;;
0<f(x)<1 :: (0,1] ;; 0<f(x)<1 :: 0<g(x)<1 ;; (1,3) :: {3,1} ;; 5 cents :: 5$ ;; 105 :: (35 + 71 = 105) ;;
\frac13 :: x = \frac13 \approx 1.3 ;; \frac{\sqrt3}{3} \approx 0.577 :: \sqrt3 ;; 120 :: 6! = 120 ;;
2x :: \frac{dy}{dx} = 3x ;; 3 :: x!=3 ;; 30 :: \angle ABC = 31 ;; \angle ABC :: \angle ACB ;;
(1,2) :: \begin{pmatrix}2\\1\end{pmatrix} ;;
\begin{pmatrix}1\\2\end{pmatrix} :: \begin{pmatrix}1&2\end{pmatrix} ;; 3:2 :: 2:3 ;; 101_2 :: 101_3 ;;
101_2 :: 5_{3} ;; 0.1\overline{6} :: 0.16 ;; 2,3 :: 2 ;; 2,3 :: (2,3) ;; (2,3) :: \{2,3\} ;; \pm 2 :: 2 ;;
2 :: \pm 2 ;; 10\% :: 0.1 ;; 5 USD :: 5 euros ;; \$5 :: 5 cents ;; 120 cm^3 :: 120 cm^2 ;; 5 :: -5 ;;
5 :: negative five ;; -5 :: five ;; 12 :: 12 dozen ;; \mathbb{R} :: \mathbb{Z} ;;
\mathbb{R} :: no solution ;; \emptyset :: 0 ;; \emptyset :: all real numbers ;; x>3 :: x\ge 3 ;;
(1,3) :: [1,3] ;; x<1 or x>3 :: 1<x<3 ;; x<1 or x>3 :: x<1 and x>3 ;; (1,5) :: (1,3)\cup(3,5) ;;
x\ne1 :: x=1 ;; x=1 :: x\ne 1 ;; x = 1 :: x \not= 1 ;; x<1 :: x \not< 1 ;; x\in A :: x\notin A ;;
A\subset B :: A\not\subset B ;; a\mid b :: a\nmid b ;; a \parallel b :: a \perp b ;;
a\equiv b :: a\not\equiv b ;; y=2x+1 :: y=2x-1 ;; y=2x+1 :: x=2y+1 ;; y=2x+1 :: 2x+1=0 ;; x=3 :: y=3 ;;
x=3 :: x=-3 ;; x=3 :: x+3=0 ;; x=3 :: 2x+1=7 ;; x<3 :: 2x<6 ;; 3 :: 3=4 ;; 3 :: 4=3 ;; 3 :: x=3, y=4 ;;
3 :: x = 3 or 4 ;; x^2+y^2=25 :: x^2-y^2=25 ;; \frac{1}{f(x)} :: f^{-1}(x) ;; f^{-1}(x) :: \frac{1}{f(x)} ;;
\sin^{-1}x :: \frac{1}{\sin x} ;; f'(x) :: f(x) ;; f''(x) :: f'(x) ;; x_1 :: x_2 ;; x_1 :: x^1 ;;
a_n :: a_{n+1} ;; \sum_{k=1}^n k :: \sum_{k=0}^n k^2 ;; \sum_{k=1}^{n} k :: \sum_{k=1}^{n-1} k ;;
\int_0^1 f :: \int_0^2 f ;; \lim_{x\to 0^+} f(x) :: \lim_{x\to 0^-} f(x) ;; \frac{dy}{dx} :: \frac{dx}{dy} ;;
\frac{d}{dx}f :: \frac{d}{dy}f ;; \max(a,b) :: \min(a,b) ;; \gcd(a,b) :: \operatorname{lcm}(a,b) ;;
\lfloor x\rfloor :: \lceil x\rceil ;; |x| :: x ;; \sqrt{x^2} :: x ;; \overline{z} :: z ;; \bar{z} :: z ;;
\bar{x} :: x ;; \hat{x} :: x ;; A^T :: A ;; A^{-1} :: A^T ;; \neg p :: p ;; p\land q :: p\lor q ;;
p \to q :: q \to p ;; A\cup B :: A\cap B ;; A\setminus B :: B\setminus A ;; \overline{AB} :: \overline{AC} ;;
(1,2) :: (1,2,3) ;; [1,2) :: (1,2] ;; (1,2) :: 1.2 ;; 12 :: 1,2 ;; 1,2 :: 12 ;; 1.5 :: 1,5,0 ;; 5 :: 5x ;;
5x :: 5 ;; 50 :: 0.5 ;; \frac12 :: \frac21 ;; \frac12 :: 12 ;; 2^3 :: 23 ;; 2^{3} :: 6 ;; x^{12} :: x^1 2 ;;
\sqrt{12} :: \sqrt{1}2 ;; \log_2 3 :: \log_3 2 ;; \log 3 :: \ln 3 ;; \binom{5}{2} :: \binom{2}{5} ;;
\binom{5}{2} :: \frac{5}{2} ;; 5! :: 5 ;; 5 :: 5! ;; \sin x :: \cos x ;; \sin x :: \sin y ;; e :: 2.718 ;;
\pi :: 3.14 ;; \pi :: 22/7 ;; \frac13 :: 0.33 ;; \sqrt2 :: 1.414 ;; 1+i :: 1-i ;; i :: 1 ;; i :: -i ;;
2i :: 2 ;; \text{even} :: odd ;; yes :: no ;; A :: B ;; \text{Monday} :: Tuesday ;; June 20 :: June 21 ;;
4:30 :: 5:30 ;; \text{increasing} :: decreasing ;; \text{even} :: not even ;; 5 :: \cancel{5} ;;
5 :: \not{5} ;; 5 :: \sout{5} ;; 5 :: \phantom{5} ;; 5 :: \hspace{5} ;; 5 :: \color{5} ;; 5 :: 5\cancel{0} ;;
5 :: {5\atop 1} ;; 5 :: \substack{5\\6} ;; 5 :: 5\phantom{0}0 ;; 50 :: 5\phantom{0} ;;
5 :: \underset{6}{5} ;; 5 :: \overset{6}{5} ;; 5 :: 5^{6}_{7} ;; 5 :: 5' ;; 5 :: 5\tag{6} 7 ;;
5 :: \text{5 or 6} ;; 5 :: 5\text{ or } 6 ;; 5 :: 5 / 6 ;; 5 :: 5; 6 ;; 5 :: 5:6 ;; 5 :: 5...6 ;; 5 :: 5-6 ;;
5 :: 5\to 6 ;; 5 :: [5,6] ;; 5 :: 5_6 ;; 5 :: 5|6 ;; 5 :: 5x=25 ;; 5 :: x=5y ;; 5 :: f(x)=5x ;; 5 :: a=5b ;;
5 :: 5=5=6 ;; 5 :: 5\ne 6 ;; 5 :: x=5\ne 6 ;; 5 :: x\approx 5 ;; 5 :: x<5 ;; 5 :: x\le5 ;;
5 :: x\equiv 5 \pmod 7 ;; 5 :: 5 \pmod 7 ;; 5 :: \sim 5 ;; 5 :: O(5) ;; 5 :: \sqrt{5} ;; 5 :: |5|x ;;
5 :: 5^x ;; 5 :: 5^0 ;; 5 :: 5+0i+x ;; 5 :: +-5 ;; 5 :: --5 ;; 5 :: 5%5 ;; 5 :: 5e1 ;; 5 :: 5E ;;
5 :: 0x5F ;; 5 :: five hundred ;; 5 :: fifth ;; 5 :: 5th of 6 ;; 5 :: a5 ;; 5 :: 5a ;; 5 :: 5 a b ;;
5 :: (5 ;; 5 :: 5) ;; 5 :: {5 ;; 5 :: 5} ;; 5 :: [5 ;; 5 :: 5, ;; 5 :: 5;6;7 ;; 5 :: x_5 ;;
5 :: \frac{5}{} ;; 5 :: \frac{5} ;; 5 :: \frac5 ;; 5 :: \sqrt[5]{} ;; 5 :: \text{not }5 ;;
5 :: \text{approximately }5 ;; 5 :: \lnot 5 ;; 5 :: \neg 5 ;; 5 :: \sim5 ;; 5 :: 5\text{ is not correct} ;;
5 :: 5\text{ or more} ;; 5 :: 5\text{ at least} ;; 5 :: \ge 5 ;; 5 :: >5 ;; 5 :: 5+ ;; 5 :: 5- ;;
5 :: 5\pm1 ;; 5 :: 5\pm 0.1 ;; 5 :: \{5,6\} ;; 5 :: 5\cup6 ;; 5 :: 5\in A ;; 5 :: 5\notin A ;;
5 :: x\in\{5,6\} ;; 5 :: \binom{5}{6} ;; 5 :: \log 5 ;; 5 :: 5\log ;; 5 :: 5\sin ;; 5 :: 5\infty ;;
5 :: \infty ;; 5 :: -\infty ;; 5 :: 5\cdot\infty ;; 5 :: 5'30 ;; 5 :: 5:30 ;; 5 :: 5/6/7 ;; 5 :: 5.6.7 ;;
5 :: 5..6 ;; 5 :: 5 6 ;; 56 :: 5 6 ;; 1000 :: 1 0 0 0 ;; 1234 :: 12,34 ;; 1234 :: 1,2,3,4 ;; 0.5 :: .5.5 ;;
0.5 :: 5 ;; 0.5 :: 0,5,0 ;; -5 :: 5 ;; -5 :: - -5 ;; 10 :: 1010_2 ;; 10 :: 10_2 ;; x :: y ;; x :: X ;;
x :: x' ;; x :: x^* ;; x :: \dot x ;; x :: \ddot{x} ;; x :: \tilde{x} ;; x :: x! ;; x :: x_0 ;; x :: -x ;;
x :: |x| ;; x :: \lfloor x\rfloor ;; x^2 :: x^{-2} ;; x^2 :: 2x ;; x^2 :: x2 ;; x^2 :: x_2 ;; x^2+1 :: x^2 ;;
x+y :: xy ;; xy :: x+y ;; x/y :: y/x ;; \frac{x}{y} :: xy ;; \sqrt{x} :: x ;; \sqrt{x} :: \sqrt[3]{x} ;;
e^x :: e^{-x} ;; e^x :: ex ;; 2^x :: x^2 ;; \sin x :: \sin^{-1} x ;; \sin^2 x :: \sin x^2 ;;
\sin^2 x :: \sin 2x ;; \cos x :: \cosh x ;; \ln x :: \log_{10} x ;; \log_2 x :: \log x ;; \ln x :: \ln(-x) ;;
\Gamma(5) :: 24x ;; a \times b :: b \times a + 1 ;; AB :: A ;; AB :: AC ;; A^T :: T ;; n! :: n ;;
(n+1)! :: n! ;; \binom{n}{k} :: \binom{k}{n} ;; n(n+1)/2 :: n(n-1)/2 ;; 2n+1 :: 2n-1 ;; a_n=2n :: a_n=2n+1 ;;
a_{n+1}=2a_n :: a_n=2a_{n+1} ;; f(x)=x^2 :: f(x)=x^3 ;; x=1,y=2 :: x=2,y=1 ;; x=1,y=2 :: x=1 ;;
x=1 :: x=1,y=2 ;; (1,2) :: (1;3) ;; (1,2) :: 1<x<3 ;; (a,b) :: (b,a) ;; (a,b) :: [a,b] ;; [a,b] :: (a,b] ;;
(-\infty,a) :: (a,\infty) ;; x<a :: x>a ;; x<a :: x\le a ;; a<x<b :: a<x ;; a<x<b :: a<x\le b ;;
x<y :: y<x ;; x\ge y :: x>y ;; x=y :: x\ne y ;; x=y :: x<y ;; a\mid b :: b\mid a ;;
A\subset B :: B\subset A ;; A\subseteq B :: A\subset B ;; x\in A :: A\in x ;; \forall x :: \exists x ;;
p\implies q :: q\implies p ;; p\iff q :: p\implies q ;; \nabla f :: \Delta f ;; \partial x :: dx ;;
\oint f :: \int f ;; \iint f :: \int f ;; \sum a_n :: \prod a_n ;; \sum_{n} a_n :: \sum_{k} b_k ;;
\lim_{x\to0}f :: \lim_{x\to1}f ;; \limsup a_n :: \liminf a_n ;; \sup A :: \inf A ;; \max A :: \sup A ;;
\dim V :: \ker V ;; \mathbb{Q} :: \mathbb{R} ;; \mathbb{R}^2 :: \mathbb{R}^3 ;; \mathbb{R} :: \mathbb{R}^+ ;;
\mathbb{R} :: \mathbb{R}\setminus\{0\} ;; \mathbb{Z}^+ :: \mathbb{Z} ;; \{1,2\} :: \{1,2,3\} ;;
\{1,2\} :: \{1\} ;; \{1\} :: \{\{1\}\} ;; \{(1,2)\} :: \{(2,1)\} ;; \{x: x>0\} :: \{x: x<0\} ;;
\{x: x>0\} :: \{x: x\in\mathbb{Z}, x>0\} ;; \{x\in\mathbb{Z}: x>0\} :: \{x: x>0\} ;;
\{x\in\mathbb{Z}: x>0\} :: (0,\infty) ;; x>0 :: x\in\mathbb{N} ;; x = 2k\pi :: x=k\pi ;;
x = 2k\pi :: x=2\pi ;; 2k\pi, k\in\mathbb{Z} :: 2k\pi, k\in\mathbb{N} ;;
\frac{\pi}{4}+k\pi :: \frac{\pi}{4}+2k\pi ;; 3\text{ m} :: 3\text{ km} ;; 3\text{ m} :: 3\text{ m}^2 ;;
3 m/s :: 3 km/h ;; 3 m/s :: 3 s/m ;; 3 \mathrm{N} :: 3 \mathrm{J} ;; 3 kg :: 3 mg ;;
30^\circ :: 30\text{ rad} ;; 30^\circ C :: 30^\circ F ;; \$3 :: 3\text{ euros} ;; \$3 :: 3\text{ cents} ;;
3 hours :: 3 minutes ;; 2 PM :: 2 AM ;; Monday :: Sunday ;; January 5 :: January 6 ;; 1/2 :: 1/3 ;;
1/2 :: 2/1 ;; 1/2 :: 12 ;; 50% :: 0.50% ;; 50% :: 5% ;; 3:4 :: 4:3 ;; 3:4 :: 3:5 ;; 3:4 :: 34 ;;
7/8 :: 7:9 ;; \text{yes} :: \text{no} ;; \text{yes} :: yes and no ;; \text{A} :: \text{B} ;;
\text{none} :: \text{all} ;; \text{John} :: \text{Joan} ;; \text{even} :: \text{neither even nor odd} ;;
\text{convergent} :: \text{divergent} ;; \text{red} :: \text{not red} ;;
\begin{pmatrix}1&2\\3&4\end{pmatrix} :: \begin{pmatrix}1&3\\2&4\end{pmatrix} ;;
\begin{pmatrix}1&2\\3&4\end{pmatrix} :: \begin{vmatrix}1&2\\3&4\end{vmatrix} ;;
\begin{pmatrix}1&2\\3&4\end{pmatrix} :: \begin{pmatrix}1&2\\3&4\end{pmatrix}^T ;;
\begin{pmatrix}1&2\\3&4\end{pmatrix} :: \begin{pmatrix}1&2\\3&4\end{pmatrix}^{-1} ;;
\begin{pmatrix}1\\2\end{pmatrix} :: \begin{pmatrix}1\\2\\3\end{pmatrix} ;;
\langle1,2\rangle :: \langle2,1\rangle ;; 2\mathbf{i}+3\mathbf{j} :: 3\mathbf{i}+2\mathbf{j} ;;
\begin{cases}x&x>0\\-x&x<0\end{cases} :: \begin{cases}-x&x>0\\x&x<0\end{cases} ;; y=|x| :: y=x ;;
y=x^2 :: x=y^2 ;; y=\sqrt{x} :: y^2=x ;; y=\ln x :: x=\ln y ;; x^2+y^2=1 :: x^2+y^2=2 ;;
x^2+y^2=1 :: x+y=1 ;; x^2+y^2<1 :: x^2+y^2>1 ;; x^2+y^2\le1 :: x^2+y^2<1 ;; y=2x :: y=2x+0.001 ;;
\frac{1}{3} :: 0.3333333 ;; \pi :: 3.1415926535 ;; \sqrt{2} :: 1.41421356 ;; e :: 2.71828 ;;
10^{10} :: 10^{-10} ;; 10^{10} :: 10000000 ;; 2^{10} :: 2^{11} ;; 2^{100} :: 2^{100}+1 ;; 100! :: 99! ;;
1e5 :: 1e-5 ;; 6.02\times10^{23} :: 6.02\times10^{22} ;; 5 :: \text{5}\text{6} ;; 56 :: \frac{5}{6} ;;
5 :: 5\text{ and }6 ;; 5 :: 5 & 6 ;; 5 :: 5 apples and 6 oranges ;; 5 :: 5 out of 6 ;; 5 :: 5 to 6 ;;
5 :: between 5 and 6 ;; 5 :: less than 5 ;; 5 :: 5 or less ;; 5 :: minus 5 ;; 5 :: 5 squared ;;
5 :: half of 5 ;; 5 :: 5 percent of 6 ;; 5 :: 5 times ;; 5 :: x5 ;; 5 :: $5$ or $6$ ;; 5 :: 5?6 ;; 5 :: ~5 ;;
5 :: ≈5 ;; 5 :: ¬5 ;; 5 :: ∓5 ;; 5 :: ±5 ;; 5 :: ⁵ ;; 5 :: ₅ ;; 5 :: ⑤ ;; 5 :: Ⅴ ;; 5 :: 𝟓 ;; 5 :: ٥ ;;
5 :: 五 ;; 5 :: 0^{i^2} ;; 5 :: \sqrt[3i^4]{-8} ;; F(2x) :: 2F(x) ;; F(2x)+F(x+1) :: 2F(x)+F(x+1) ;;
F(-x) :: -F(x) ;; F(2G(x)) :: F(G(2x)) ;; F(2x)=1 :: 2F(x)=1 ;; \Gamma(2x) :: 2\Gamma(x) ;;
\zeta(6) :: 2\zeta(3) ;; u(3t) :: 3u(t) ;; 2\operatorname{sgn}(x) :: \operatorname{sgn}(2x) ;;
2\operatorname{Re}(z) :: \operatorname{Re}(2z) ;; \lfloor x \rfloor + 1 :: \lceil x \rceil ;; x=4 :: x^2=4 ;;
x=4 :: -x=4 ;; x=5 :: \Delta x=5 ;; z=5 :: |z|=5 ;; z=1+i :: \overline{z}=1+i ;;
z=\frac{\pi}{4} :: \arg z=\frac{\pi}{4} ;; 1:3:2 :: 1:2:3 ;; x=1 :: 1=1 ;; 2\ln x :: \ln(x^2) ;;
x^2+C :: x^2 ;; x^2+C :: x^2+x+C ;; F(2x)+C :: 2F(x)+C ;; 2\sinh x :: \sinh 2x ;;
\frac{1}{\sinh x} :: \sinh^{-1} x ;; 5k+1, k \in \mathbb{N} :: 5k+1, k \in \mathbb{Z} ;; AB=25 :: AB^2=25 ;;
\cos(x)=\frac12 :: \sin(x)=\frac12 ;; \angle A=50 :: \angle A+\angle B=50 ;;
P(A)=\frac13 :: P(\bar{A})=\frac13 ;; P(B|A)=0.5 :: P(A|B)=0.5 ;; P(A\cup B)=0.5 :: P(A\cap B)=0.5 ;;
E(X)=3 :: E(X^2)=3 ;; a=4 :: a'=4 ;; 2\text{ red}, 3\text{ blue} :: 3\text{ red}, 2\text{ blue} ;;
5 :: 7=5 ;; 5 :: 5=7 ;; 5 :: 1=2=3=5 ;; 11 :: x=5+5+1=7=11 ;; 0.5 :: 50\% ;; 50\% :: 0.5 ;; 5 :: 2+3 ;;
5 :: 1\cdot 5 ;; 5 :: \int_0^1 5 dx ;; 5 :: \sum_{k=1}^{5} 1 ;; 5 :: 3 or 5 ;; 5 :: 5, 6 ;;
5 :: 5 \text{ or } 6 ;; 5 :: not 5 ;; 5 :: \text{the answer is } 5 ;; \frac{100}{3} :: 33.333333 ;;
5 :: 5t ;; 5 m :: 5 cm ;; Mar 5 :: Ram 5 ;; 12B :: B12 ;; H2O :: OH2 ;; B12 :: b12 ;; C_2 :: C ;;
\text{2 red 1 blue} :: \text{1 red 2 blue} ;; 5 :: { ;; 5 :: ５ ;; odd :: \text{oddd} ;; 5 :: 5&6 ;;
5 :: 5\\6 ;; 5 :: 5? ;; 5 :: 5:1 ;; 5 :: 5 \approx 5 ;; 2^{1/2} :: \sqrt{2}|7 ;; 3 :: 3 millions ;;
3 :: 3 \text{ quarters} ;; 5 :: 5 thirds ;; 5 :: 5 hundredths ;; 5 :: 5 trillionths ;;
3 :: 3 divided by two ;; 5 :: 5 below ;; 5 :: 5 negative ;; 5 :: 5 twelve ;; 4 :: 4 squared ;;
5 :: 5 isn't right ;; \$5 :: €5 ;; 5 ounces :: 5 pounds ;; 5 lb :: 5 kg ;; 5 m :: 5 m/s ;;
5 ft^3 :: 5 feet ;; 5\text{ cm} :: 5\text{ cm}^2 ;; \sqrt{2} cm :: \sqrt{2} cm^2 ;; 30 :: 3 x 10 ;;
1 :: 2½ ;; 12 :: ½ ;; x^2 :: x²³ ;; 12 :: 1'2 ;; 12 :: one two ;; 2 :: two or three ;; 5 :: about five ;;
\pi :: \approx 3.14 ;; 30°F :: 30 degrees Celsius ;; 5 m :: \(5\) cm ;; -\infty :: ∞
""")
DIFFERENT += [("5", "5\n6"), ("5", ""), ("5", "5\x00"), ("5", "\u202e5")]


@pytest.fixture(scope="module")
def grader():
    with Grader(workers=1, limit_s=30.0) as grader:
        yield grader


@pytest.mark.parametrize(("gold", "answer"), SAME)
def test_same(grader, gold, answer):
    assert grader.same_answer(answer, gold).status == "correct"


@pytest.mark.parametrize(("gold", "answer"), DIFFERENT)
def test_different(grader, gold, answer):
    assert grader.same_answer(answer, gold).status == "wrong"
