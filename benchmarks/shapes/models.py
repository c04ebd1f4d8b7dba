"""Systems that people check, in our own PRISM descriptions, each in a size of choice.

A shape is a function from its size to a text; `SHAPES` lists the sizes and questions that are
measured. Rings and teams are one module and its renamed copies.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Shape:
    """A system with the sizes and the questions to measure."""

    text: Callable[..., str]
    sizes: tuple[dict[str, int], ...]
    questions: tuple[str, ...]


def copies(first: int, count: int, rename: Callable[[int], str]) -> str:
    """Return modules `first + 1 ... count` as renamed copies of module `first`."""
    return "\n".join(
        f"module m{i} = m{first} [ {rename(i)} ] endmodule" for i in range(first + 1, count + 1)
    )


def retransmission(chunks: int, tries: int) -> str:
    """Return a file sent chunk by chunk over two lossy channels, with few tries each.

    Deep and narrow: about thirteen levels per chunk and try.
    """
    return f"""
dtmc
const int N = {chunks};
const int MAX = {tries};
module sender
  s : [0..5]; // 0 next chunk, 1 send, 2 wait, 3 acknowledged, 4 done, 5 given up
  i : [0..N];
  tries : [0..MAX];
  [] s=0 & i<N -> (s'=1) & (i'=i+1) & (tries'=0);
  [] s=0 & i=N -> (s'=4);
  [put] s=1 & tries<MAX -> (s'=2) & (tries'=tries+1);
  [] s=1 & tries=MAX -> (s'=5);
  [back] s=2 -> (s'=3);
  [late] s=2 -> (s'=1);
  [] s=3 -> (s'=0);
  [] s>=4 -> true;
endmodule
module there
  k : [0..2];
  [put] k=0 -> 0.95 : (k'=1) + 0.05 : (k'=2);
  [get] k=1 -> (k'=0);
  [late] true -> (k'=0);
endmodule
module receiver
  r : [0..1];
  seen : bool;
  [get] r=0 -> (r'=1) & (seen'=!seen);
  [answer] r=1 -> (r'=0);
endmodule
module home
  l : [0..2];
  [answer] l=0 -> 0.97 : (l'=1) + 0.03 : (l'=2);
  [back] l=1 -> (l'=0);
  [late] k=2 | l=2 -> (l'=0);
endmodule
label "lost" = s=5;
label "late" = s=5 & i>N/2;
rewards "sent" [put] true : 1; endrewards
label "over" = s>=4;
"""


def consensus(processes: int, bound: int) -> str:
    """Return processes that push a shared counter by coin flips until it leaves the middle.

    A random walk under a scheduler: mixes slowly, and slower with the square of the bound.
    """
    finished = " & ".join(f"pc{i}=3" for i in range(1, processes + 1))
    heads = " & ".join(f"coin{i}=1" for i in range(1, processes + 1))
    agree = " & ".join(f"coin{i}=coin{i + 1}" for i in range(1, processes))
    return f"""
mdp
const int N = {processes};
const int K = {bound};
const int range = 2*(K+1)*N;
const int left = N;
const int right = 2*(K+1)*N - N;
global counter : [0..range] init (K+1)*N;
module m1
  pc1 : [0..3];
  coin1 : [0..1];
  [] pc1=0 -> 0.5 : (coin1'=0) & (pc1'=1) + 0.5 : (coin1'=1) & (pc1'=1);
  [] pc1=1 & coin1=0 & counter>0 -> (counter'=counter-1) & (pc1'=2) & (coin1'=0);
  [] pc1=1 & coin1=1 & counter<range -> (counter'=counter+1) & (pc1'=2) & (coin1'=0);
  [] pc1=2 & counter<=left -> (pc1'=3) & (coin1'=0);
  [] pc1=2 & counter>=right -> (pc1'=3) & (coin1'=1);
  [] pc1=2 & counter>left & counter<right -> (pc1'=0);
  [done] pc1=3 -> (pc1'=pc1);
endmodule
{copies(1, processes, lambda i: f"pc1=pc{i}, coin1=coin{i}")}
label "finished" = {finished};
label "heads" = {finished} & {heads};
label "disagree" = {finished} & !({agree});
rewards "steps" true : 1; endrewards
"""


def philosophers(count: int) -> str:
    """Return philosophers who pick their first fork by a coin."""
    hungry = " | ".join(f"p{i}=1" for i in range(1, count + 1))
    eats = " | ".join(f"p{i}=6" for i in range(1, count + 1))

    def rename(i: int) -> str:
        left = i - 1 if i > 1 else count
        right = i + 1 if i < count else 1
        return f"p1=p{i}, p{count}=p{left}, p2=p{right}"

    return f"""
mdp
// 0 thinks, 1 draws, 2 wants left, 3 wants right, 4 has left, 5 has right, 6 eats, 7 and 8 put back
module m1
  p1 : [0..8];
  [] p1=0 -> (p1'=1);
  [] p1=1 -> 0.5 : (p1'=2) + 0.5 : (p1'=3);
  [] p1=2 & (p{count}!=5 & p{count}!=6 & p{count}!=8) -> (p1'=4);
  [] p1=3 & (p2!=4 & p2!=6 & p2!=7) -> (p1'=5);
  [] p1=4 & (p2!=4 & p2!=6 & p2!=7) -> (p1'=6);
  [] p1=4 & !(p2!=4 & p2!=6 & p2!=7) -> (p1'=1);
  [] p1=5 & (p{count}!=5 & p{count}!=6 & p{count}!=8) -> (p1'=6);
  [] p1=5 & !(p{count}!=5 & p{count}!=6 & p{count}!=8) -> (p1'=1);
  [] p1=6 -> (p1'=7);
  [] p1=6 -> (p1'=8);
  [] p1=7 -> (p1'=0);
  [] p1=8 -> (p1'=0);
endmodule
{copies(1, count, rename)}
label "hungry" = {hungry};
label "eats" = {eats};
rewards "steps" true : 1; endrewards
"""


def election(stations: int, numbers: int) -> str:
    """Return stations on a ring that draw numbers until one is unique."""
    draw = " + ".join(f"1/K : (p1'={k}) & (v1'={k}) & (u1'=true)" for k in range(numbers))
    last = stations
    winner = " | ".join(f"s{i}=3" for i in range(1, stations + 1))
    anyone = " | ".join(f"u{i}" for i in range(1, stations + 1))
    return f"""
dtmc
const int N = {stations};
const int K = {numbers};
module counter
  c : [1..N] init 1;
  [read] c<N -> (c'=c+1);
  [done] c=N & ({anyone}) -> (c'=c);
  [again] c=N & !({anyone}) -> (c'=1);
  [draw] c=1 -> (c'=1);
endmodule
module m1
  s1 : [0..3];
  u1 : bool;
  v1 : [0..K-1];
  p1 : [0..K-1];
  [draw] s1=0 -> {draw.replace("(u1'=true)", "(u1'=true) & (s1'=1)")};
  [read] s1=1 & u1 & c<N-1 -> (u1'=(p1!=v{last})) & (v1'=v{last});
  [read] s1=1 & !u1 & c<N-1 -> (v1'=v{last}) & (p1'=0);
  [read] s1=1 & u1 & c=N-1 -> (s1'=p1!=v{last} ? 3 : 2) & (u1'=(p1!=v{last})) & (v1'=0) & (p1'=0);
  [read] s1=1 & !u1 & c=N-1 -> (s1'=2) & (v1'=0) & (p1'=0);
  [done] s1>=2 -> (s1'=s1);
  [again] s1=2 -> (s1'=0) & (v1'=0) & (p1'=0) & (u1'=false);
endmodule
{copies(1, stations, lambda i: f"s1=s{i}, u1=u{i}, v1=v{i}, p1=p{i}, v{last}=v{i - 1}")}
label "elected" = {winner};
rewards "rounds" [draw] true : 1; endrewards
"""


def stabilisation(processes: int) -> str:
    """Return tokens on a ring: a scheduler picks a holder, whose token moves by a coin."""
    count = " + ".join(f"(q{i} ? 1 : 0)" for i in range(1, processes + 1))
    globals_ = "\n".join(f"global q{i} : bool init true;" for i in range(1, processes + 1))
    moves = "\n".join(
        f"  [] q{i} & tokens>1 -> 0.5 : (q{i}'=false) & (q{(i - 2) % processes + 1}'=true)"
        f" + 0.5 : (q{i}'=false) & (q{i % processes + 1}'=true);"
        for i in range(1, processes + 1)
    )
    return f"""
mdp
{globals_}
formula tokens = {count};
module ring
{moves}
  [] tokens=1 -> true;
endmodule
label "stable" = tokens=1;
rewards "steps" tokens>1 : 1; endrewards
"""


def address(probes: int, wait: int, others: int) -> str:
    """Return a host that picks an address and probes it over a lossy medium."""
    return f"""
mdp
const int K = {probes};   // probes before the address is used
const int T = {wait};     // ticks between probes
const int H = {others};   // messages of others that may be on their way
const double used = 0.03; // share of addresses that are taken
module host
  h : [0..4]; // 0 picks, 1 sends, 2 waits, 3 uses, 4 in conflict for good
  taken : bool;
  sent : [0..K];
  wait : [0..T];
  clashes : [0..20];
  [] h=0 & clashes<20 -> used : (h'=1) & (taken'=true) & (sent'=0) & (wait'=0)
                       + 1-used : (h'=1) & (taken'=false) & (sent'=0) & (wait'=0);
  [] h=0 & clashes=20 -> (h'=4);
  [probe] h=1 & sent<K -> (h'=2) & (sent'=sent+1) & (wait'=0);
  [] h=1 & sent=K -> (h'=3);
  [tick] h=2 & wait<T -> (wait'=wait+1);
  [] h=2 & wait=T -> (h'=1);
  [reply] h=2 & taken -> (h'=0) & (clashes'=min(clashes+1,20)) & (wait'=0) & (sent'=0);
  [reply] h=2 & !taken -> true;
  [reply] h=1 -> true;
  [reply] h=0 -> true;
  [reply] h=3 & taken -> (h'=4);
  [reply] h=3 & !taken -> true;
  [reply] h=4 -> true;
  [tick] h=3 -> true;
  [tick] h=4 -> true;
  [] h>=3 -> true;
endmodule
module medium
  way : [0..H];
  age : [0..T];
  [probe] taken & way<H -> 0.9 : (way'=way+1) & (age'=0) + 0.1 : true;
  [probe] !taken | way=H -> true;
  [reply] way>0 -> 0.95 : (way'=way-1) & (age'=0) + 0.05 : (way'=way-1) & (age'=0);
  [tick] age<T | way=0 -> (age'=min(age+1,T));
  [tick] age=T & way>0 -> 0.7 : (way'=way-1) & (age'=0) + 0.3 : (age'=age);
endmodule
module drift
  d : [0..9];
  [tick] true -> 0.5 : (d'=mod(d+1,10)) + 0.5 : true;
endmodule
label "uses" = h>=3;
label "wrong" = h=3 & taken;
rewards "probes" [probe] true : 1; endrewards
rewards "time" [tick] h=2 : 1; endrewards
"""


def backoff(stations: int, slots: int, messages: int) -> str:
    """Return stations on one channel: a collision makes each wait for a random number of slots."""
    sent = " & ".join(f"left{i}=0" for i in range(1, stations + 1))
    draw = " + ".join(f"1/{slots} : (s1'=2) & (w1'={k})" for k in range(slots))
    names = range(1, stations + 1)
    begin = "\n".join(f"  [send{i}] c<2 -> (c'=c+1);" for i in names)
    end = "\n".join(f"  [end{i}] c=1 -> (c'=0);" for i in names)

    def rename(i: int) -> str:
        return ", ".join(f"{v}1={v}{i}" for v in ("s", "w", "left", "clashes", "send", "end"))

    return f"""
mdp
const int L = {slots - 1};
const int M = {messages};
module channel
  c : [0..2];
{begin}
{end}
  [clash] c=2 -> (c'=0);
  [time] c!=2 -> true;
endmodule
module m1
  s1 : [0..3];
  w1 : [0..L];
  left1 : [0..M] init M;
  clashes1 : [0..3];
  [send1] s1=0 & left1>0 -> (s1'=1);
  [end1] s1=1 -> (s1'=0) & (left1'=left1-1) & (clashes1'=0);
  [clash] s1=1 & clashes1<3 -> {draw.replace("(s1'=2)", "(s1'=2) & (clashes1'=clashes1+1)")};
  [clash] s1=1 & clashes1=3 -> (s1'=3);
  [clash] s1!=1 -> true;
  [time] s1=2 & w1>0 -> (w1'=w1-1);
  [time] s1=2 & w1=0 -> (s1'=0);
  [time] s1=3 | (s1=0 & left1=0) -> true;
endmodule
{copies(1, stations, rename)}
label "sent" = {sent};
label "failed" = {" | ".join(f"s{i}=3" for i in names)};
label "over" = {" & ".join(f"(s{i}=3 | (left{i}=0 & s{i}=0))" for i in names)};
rewards "collisions" [clash] true : 1; endrewards
"""


def exclusion(processes: int, draws: int) -> str:
    """Return processes that draw lots for a critical section; the largest lot seen goes in."""
    lots = " + ".join(
        f"{1 / 2 ** min(k, draws - 1)} : (p1'=2) & (b1'={k}) & (high'=max(high,{k}))"
        for k in range(1, draws + 1)
    )
    inside = " + ".join(f"(p{i}=3 ? 1 : 0)" for i in range(1, processes + 1))
    idle = " & ".join(f"p{i}!=1 & p{i}!=3" for i in range(1, processes + 1))
    return f"""
mdp
const int K = {draws};
global high : [0..K];
global free : bool init true;
global turn : [0..7];
module m1
  p1 : [0..3]; // 0 rests, 1 tries, 2 holds a lot, 3 inside
  b1 : [0..K];
  [] p1=0 -> (p1'=1);
  [] p1=1 -> {lots};
  [] p1=2 & free & b1=high -> (p1'=3) & (free'=false) & (high'=0) & (b1'=0);
  [] p1=2 & free & b1<high -> 0.9 : (p1'=2) + 0.1 : (p1'=1) & (b1'=0);
  [] p1=2 & high=0 -> (p1'=1) & (b1'=0);
  [] p1=3 -> (p1'=0) & (free'=true) & (turn'=mod(turn+1,8));
endmodule
{copies(1, processes, lambda i: f"p1=p{i}, b1=b{i}")}
label "clash" = {inside} > 1;
label "first" = p1=3;
label "other" = {" | ".join(f"p{i}=3" for i in range(2, processes + 1))};
label "idle" = {idle};
label "turns" = turn=7;
rewards "steps" true : 1; endrewards
"""


def crowds(members: int, runs: int) -> str:
    """Return a crowd that hides who speaks: members forward or deliver; bad ones look on."""
    names = range(members)
    forward = " + ".join(f"forward/{members} : (phase'=1) & (who'={i})" for i in names)
    observe = "\n".join(
        f"  [] phase=3 & who={i} & seen{i}<RUNS -> (seen{i}'=seen{i}+1) & (phase'=4);"
        for i in names
    )
    variables = "\n".join(f"  seen{i} : [0..RUNS];" for i in names)
    return f"""
dtmc
const int RUNS = {runs};
const double forward = 0.8;
const double bad = 0.167;
module crowd
  phase : [0..5]; // 0 starts, 1 chosen, 2 holds, 3 observed, 4 delivered, 5 over
  who : [0..{members - 1}];
  run : [0..RUNS] init RUNS;
{variables}
  [] phase=0 & run>0 -> (phase'=1) & (run'=run-1) & (who'=0);
  [] phase=0 & run=0 -> (phase'=5);
  [] phase=1 -> 1-bad : (phase'=2) + bad : (phase'=3);
  [] phase=2 -> 1-forward : (phase'=4) + {forward};
{observe}
  [] phase=4 -> (phase'=0) & (who'=0);
  [] phase=5 -> true;
endmodule
label "seen" = phase=5 & seen0>1;
label "other" = phase=5 & ({" | ".join(f"seen{i}>1" for i in range(1, members))});
label "over" = phase=5;
rewards "hops" [] phase=1 : 1; endrewards
"""


SHAPES = {
    "retransmission": Shape(
        retransmission,
        ({"chunks": 512, "tries": 5}, {"chunks": 4096, "tries": 10}),
        ('P=? [ F "lost" ]', 'P=? [ F "late" ]', 'R{"sent"}=? [ F "over" ]'),
    ),
    "consensus": Shape(
        consensus,
        ({"processes": 4, "bound": 2}, {"processes": 4, "bound": 8}),
        (
            'Pmin=? [ F "heads" ]',
            'Pmax=? [ F "disagree" ]',
            'R{"steps"}min=? [ F "finished" ]',
            'R{"steps"}max=? [ F "finished" ]',
        ),
    ),
    "philosophers": Shape(
        philosophers,
        ({"count": 5}, {"count": 6}),
        ('Pmax=? [ F<=20 "eats" ]', 'R{"steps"}min=? [ F "eats" ]', 'Pmin=? [ F<=40 "eats" ]'),
    ),
    "election": Shape(
        election,
        ({"stations": 4, "numbers": 8}, {"stations": 5, "numbers": 10}),
        ('P=? [ F<=30 "elected" ]', 'R{"rounds"}=? [ F "elected" ]'),
    ),
    "stabilisation": Shape(
        stabilisation,
        ({"processes": 14}, {"processes": 17}),
        (
            'R{"steps"}max=? [ F "stable" ]',
            'R{"steps"}min=? [ F "stable" ]',
            'Pmin=? [ F<=50 "stable" ]',
        ),
    ),
    "address": Shape(
        address,
        ({"probes": 4, "wait": 4, "others": 2}, {"probes": 6, "wait": 8, "others": 2}),
        (
            'Pmax=? [ F "wrong" ]',
            'Pmin=? [ F "wrong" ]',
            'R{"probes"}min=? [ F "uses" ]',
            'R{"probes"}max=? [ F "uses" ]',
        ),
    ),
    "backoff": Shape(
        backoff,
        (
            {"stations": 2, "slots": 8, "messages": 8},
            {"stations": 3, "slots": 4, "messages": 3},
            {"stations": 3, "slots": 8, "messages": 4},
        ),
        (
            'Pmax=? [ F "failed" ]',
            'Pmin=? [ F "sent" ]',
            'R{"collisions"}min=? [ F "over" ]',
            'R{"collisions"}max=? [ F "over" ]',
        ),
    ),
    "exclusion": Shape(
        exclusion,
        ({"processes": 4, "draws": 4}, {"processes": 5, "draws": 3}),
        ('Pmax=? [ !"other" U "first" ]', 'R{"steps"}min=? [ F "turns" ]', 'Pmax=? [ F "clash" ]'),
    ),
    "crowds": Shape(
        crowds,
        ({"members": 10, "runs": 4}, {"members": 20, "runs": 5}),
        ('P=? [ F "seen" ]', 'P=? [ F "other" ]', 'R{"hops"}=? [ F "over" ]'),
    ),
}
