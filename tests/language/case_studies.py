"""Small models in the manner of well-known case studies, in our own words."""

DIE = """
dtmc  // a fair die from a fair coin
module die
  s : [0..7];
  face : [0..6];
  [] s=0 -> 0.5 : (s'=1) + 0.5 : (s'=2);
  [] s=1 -> 0.5 : (s'=3) + 0.5 : (s'=4);
  [] s=2 -> 0.5 : (s'=5) + 0.5 : (s'=6);
  [] s=3 -> 0.5 : (s'=1) + 0.5 : (s'=7) & (face'=1);
  [] s>=4 & s<=5 -> 0.5 : (s'=7) & (face'=2*s-6) + 0.5 : (s'=7) & (face'=2*s-5);
  [] s=6 -> 0.5 : (s'=2) + 0.5 : (s'=7) & (face'=6);
  [] s=7 -> true;
endmodule
label "done" = s=7;
rewards "flips" [] s<7 : 1; endrewards
rewards "face" s=7 : face; endrewards
"""

HERMAN = """
dtmc  // a ring of five bits, all of which move at once
const double p = 0.4;
module process1
  b1 : bool;
  [step] b1=b5 -> p : (b1'=false) + 1-p : (b1'=true);
  [step] b1!=b5 -> (b1'=b5);
endmodule
module process2 = process1 [b1=b2, b5=b1] endmodule
module process3 = process1 [b1=b3, b5=b2] endmodule
module process4 = process1 [b1=b4, b5=b3] endmodule
module process5 = process1 [b1=b5, b5=b4] endmodule
formula tokens = (b1=b5?1:0)+(b2=b1?1:0)+(b3=b2?1:0)+(b4=b3?1:0)+(b5=b4?1:0);
init true endinit
label "stable" = tokens=1;
rewards "steps" tokens>1 : 1; [step] tokens>3 : 0.25; endrewards
"""

LEADER = """
dtmc  // three stations draw numbers; a largest one that is unique wins
const int K = 3;
module counter
  round : [0..2];
  [draw] round=0 -> (round'=1);
  [compare] round=1 & !unique -> (round'=0);
  [compare] round=1 & unique -> (round'=2);
  [done] round=2 -> true;
endmodule
module station1
  v1 : [0..K-1];
  [draw] true -> 1/K : (v1'=0) + 1/K : (v1'=1) + 1/K : (v1'=2);
  [compare] true -> (v1'=0);
endmodule
module station2 = station1 [v1=v2] endmodule
module station3 = station1 [v1=v3] endmodule
formula top = max(v1, v2, v3);
formula unique = (v1=top ? 1 : 0) + (v2=top ? 1 : 0) + (v3=top ? 1 : 0) = 1;
label "elected" = round=2;
rewards "rounds" [draw] true : 1; endrewards
"""

CONSENSUS = """
mdp  // two processes push a shared counter up and down until it leaves the middle
const int N = 2;
const int B = 2;
const int range = 2*(B+1)*N;
const int left = N;
const int right = 2*(B+1)*N - N;
global counter : [0..range] init (B+1)*N;
module process1
  pc1 : [0..3];
  coin1 : [0..1];
  [] pc1=0 -> 0.5 : (coin1'=0) & (pc1'=1) + 0.5 : (coin1'=1) & (pc1'=1);
  [] pc1=1 & coin1=0 & counter>0 -> (counter'=counter-1) & (pc1'=2) & (coin1'=0);
  [] pc1=1 & coin1=1 & counter<range -> (counter'=counter+1) & (pc1'=2) & (coin1'=0);
  [] pc1=2 & counter<=left -> (pc1'=3) & (coin1'=0);
  [] pc1=2 & counter>=right -> (pc1'=3) & (coin1'=1);
  [] pc1=2 & counter>left & counter<right -> (pc1'=0);
  [done] pc1=3 -> true;
endmodule
module process2 = process1 [pc1=pc2, coin1=coin2] endmodule
label "finished" = pc1=3 & pc2=3;
rewards "moves" [] true : 1; endrewards
"""

CSMA = """
mdp  // two stations send over one channel; a collision makes them wait at random
const int L = 2;
module channel
  c : [0..2];
  [send1] c=0 -> (c'=1);
  [send2] c=0 -> (c'=1);
  [send1] c=1 -> (c'=2);
  [send2] c=1 -> (c'=2);
  [end1] c=1 -> (c'=0);
  [end2] c=1 -> (c'=0);
  [clash] c=2 -> (c'=0);
  [time] c!=2 -> true;
endmodule
module station1
  s1 : [0..3];
  w1 : [0..L];
  n1 : [0..2];
  [send1] s1=0 -> (s1'=1);
  [end1] s1=1 -> (s1'=3);
  [clash] s1=1 -> 1/(n1+1) : (s1'=2) & (w1'=0) & (n1'=min(n1+1,2))
                + 1-1/(n1+1) : (s1'=2) & (w1'=L) & (n1'=min(n1+1,2));
  [clash] s1!=1 -> true;
  [time] s1=2 & w1>0 -> (w1'=w1-1);
  [time] s1=2 & w1=0 -> (s1'=0);
  [time] s1=3 -> true;
endmodule
module station2 = station1 [s1=s2, w1=w2, n1=n2, send1=send2, end1=end2] endmodule
label "sent" = s1=3 & s2=3;
rewards "time" [time] s1!=3 | s2!=3 : 1; endrewards
rewards (s1=2) : 0.5; (s2=2) : w2; endrewards
"""

ROBOT = """
mdp  // a robot and a person in a grid; the robot slips, the person wanders
const int n = 3;
module robot
  x : [0..n-1];
  y : [0..n-1];
  [east] x<n-1 -> 0.8 : (x'=x+1) + 0.1 : (y'=min(y+1,n-1)) + 0.1 : true;
  [west] x>0 -> 0.8 : (x'=x-1) + 0.2 : true;
  [north] y<n-1 -> (1-x/10) : (y'=y+1) + x/10 : (x'=max(x-1,0));
  [south] y>0 -> (y'=y-1);
  [north] y<n-2 -> 0.3 : (y'=y+2) + 0.7 : true;
endmodule
module person
  u : [0..n-1] init n-1;
  [east] true -> 1/3 : (u'=mod(u+1,n)) + 1/3 : (u'=mod(u-1,n)) + 1/3 : true;
  [west] true -> 0.5 : (u'=mod(u+1,n)) + 0.5 : true;
  [north] u!=x -> (u'=x);
  [north] u=x -> 0.5 : (u'=0) + 0.5 : (u'=n-1);
  [south] u>0 | y=1 -> true;
endmodule
label "goal" = x=n-1 & y=n-1;
label "met" = x=u & y=1;
rewards "cost" [east] true : 1; [north] x>0 : x+0.5; x=u : 2; endrewards
"""

ALL = {
    "die": DIE,
    "herman": HERMAN,
    "leader": LEADER,
    "consensus": CONSENSUS,
    "csma": CSMA,
    "robot": ROBOT,
}
