# ruff: noqa: E501
"""Every bad text is answered with its place and a message that says what must hold."""

import pytest

from rfmdp.errors import PrismError
from rfmdp.language.check import check_model
from rfmdp.language.check_properties import check_property
from rfmdp.language.parse import parse_model, parse_property_file

# A module to which a case adds something after line 5.
MODEL = """dtmc
module m
  x : [0..2] init 0;
  [a] x=0 -> 0.5:(x'=1) + 0.5:(x'=2);
endmodule
"""


def command(text: str) -> str:
    """Return a model with the command in line 5."""
    return f"mdp\nmodule m\n  x : [0..2];\n  b : bool;\n{text}\nendmodule"


# name, text, line, column, message
# fmt: off
MODELS = [
    ('pepa', 'r = 1.0;\nP = (a, r).Q;\nQ = (b, r).P;\nP <a> Q', 1, 3, "expected a name, the end of the text, 'const', 'dtmc', 'formula', 'global', 'init', 'label', 'mdp', 'module', 'nondeterministic', 'prob', 'probabilistic', 'rate' or 'rewards', found '='; models in the PRISM language (dtmc, mdp, idtmc, imdp), .tra, .umb and .rfmdp are read"),
    ('pepa comment', '%r = 1.0;', 1, 1, "unexpected character '%'; models in the PRISM language (dtmc, mdp, idtmc, imdp), .tra, .umb and .rfmdp are read"),
    ('jani', '{"jani-version": 1}', 1, 1, "expected a name, the end of the text, 'const', 'dtmc', 'formula', 'global', 'init', 'label', 'mdp', 'module', 'nondeterministic', 'prob', 'probabilistic', 'rate' or 'rewards', found '{'; models in the PRISM language (dtmc, mdp, idtmc, imdp), .tra, .umb and .rfmdp are read"),
    ('misspelt type', 'dtcm\nmodule m endmodule', 1, 1, "expected a model type, 'const', 'formula', 'global', 'init', 'label', 'module' or 'rewards', found 'dtcm'; did you mean 'dtmc' instead of 'dtcm'?"),
    ('misspelt variable', 'module m\n  count : [0..1];\n  [] cuont=0 -> true;\nendmodule', 3, 6, "unknown name 'cuont'; it must be a constant, formula or variable; did you mean 'count'?"),
    ('ctmc', 'ctmc\nmodule m endmodule', 1, 1, "model type 'ctmc' is not supported; use dtmc, mdp, idtmc or imdp"),
    ('pta', 'pta', 1, 1, "model type 'pta' is not supported; use dtmc, mdp, idtmc or imdp"),
    ('smg', 'smg\nmodule m endmodule', 1, 1, "model type 'smg' is not supported"),
    ('stochastic', ' stochastic', 1, 2, "model type 'stochastic' (a ctmc) is not supported; use dtmc, mdp, idtmc or imdp"),
    ('pomdp', 'pomdp', 1, 1, "model type 'pomdp' is not supported; use dtmc, mdp, idtmc or imdp"),
    ('unknown type', 'hmm\nmodule m endmodule', 1, 1, "expected a model type, 'const', 'formula', 'global', 'init', 'label', 'module' or 'rewards', found 'hmm'"),
    ('two types', 'dtmc\nmdp\nmodule m endmodule', 2, 1, 'a model must have only one model type, found a second'),
    ('two inits', 'module m x:[0..1]; endmodule\ninit x=0 endinit\ninit x=1 endinit', 3, 1, "a model must have only one 'init ... endinit', found a second"),
    ('system', MODEL + 'system m endsystem', 6, 1, "a process-algebra composition ('system ... endsystem') is not supported"),
    ('observables', MODEL + 'observables x endobservables', 6, 1, "'observables ... endobservables' of partially observable models is not supported"),
    ('clock', 'mdp\nmodule m\n  c : clock;\nendmodule', 3, 7, "a clock variable ('clock') is not supported"),
    ('invariant', 'mdp\nmodule m\n  x : [0..1];\n  invariant x<1 endinvariant\nendmodule', 4, 3, "a clock invariant ('invariant ... endinvariant') is not supported"),
    ('missing arrow', command("  [] x=0 : (x'=1);"), 5, 10, "expected '->', found ':'"),
    ('missing semicolon', command("  [] x=0 -> (x'=1)"), 6, 1, "expected '&' or ';', found 'endmodule'"),
    ('missing prime', command('  [] x=0 -> (x=1);'), 5, 18, "expected ':', found ';'; an assignment is written (x'=1)"),
    ('missing parentheses', command("  [] x=0 -> x'=1;"), 5, 13, "expected '[' or an expression, found 'x''; an assignment is written (x'=1)"),
    ('missing range end', 'module m\n  x : [0 2];\nendmodule', 2, 10, "expected '..' or an operator, found '2'"),
    ('reserved variable', 'module m\n  F : bool;\nendmodule', 2, 3, "expected a name, '=', '[' or 'endmodule', found 'F', which is a reserved word"),
    ('reserved action', command('  [A] true -> true;'), 5, 4, "expected a name or ']', found 'A', which is a reserved word"),
    ('label without quotes', MODEL + 'label done = x=1;', 6, 7, "expected a name in double quotes, found 'done'"),
    ('label with space', MODEL + 'label "all done" = x=1;', 6, 7, 'expected a name of letters, digits and \'_\' in the quotes, found "all done"'),
    ('unfinished quote', MODEL + 'label "done = x=1;', 6, 7, 'a quoted name must end with \'"\' on the same line'),
    ('bad character', MODEL + 'const int k = 1 # 2;', 6, 17, "unexpected character '#'"),
    ('integer too large', 'const int k = 2147483648;\n' + MODEL, 1, 15, 'an integer must be at most 2147483647; write 2147483648.0 for a double'),
    ('dangling operator', 'const int k = 2 +;\n' + MODEL, 1, 18, "expected an expression, found ';'"),
    ('misplaced not', command('  [] b = !b -> true;'), 5, 10, "expected an operand, found '!'; write the negation in parentheses"),
    ('end of text', 'dtmc\nmodule m\n  x : [0..1];', 3, 14, "expected a name, '[' or 'endmodule', found the end of the text"),
    ('unknown function', command('  [] sqrt(x)>1 -> true;'), 5, 6, "unknown function 'sqrt'; there are min, max, floor, ceil, round, pow, mod, log"),
    ('no modules', 'dtmc\nconst int k = 1;', 1, 1, 'a model must have at least one module'),
    ('module twice', MODEL + 'module m endmodule', 6, 8, "'m' must be defined only once, found a module and a module in line 2"),
    ('variable twice', MODEL + 'module n\n  x : bool;\nendmodule', 7, 3, "'x' must be defined only once, found a variable of module 'n' and a variable of module 'm' in line 3"),
    ('constant and formula', 'const int k = 1;\nformula k = 2;\n' + MODEL, 2, 9, "'k' must be defined only once, found a formula and a constant in line 1"),
    ('unknown name', command('  [] y=0 -> true;'), 5, 6, "unknown name 'y'; it must be a constant, formula or variable"),
    ('formula cycle', 'formula f = g+1;\nformula g = h;\nformula h = f;\n' + MODEL, 1, 9, 'a formula must not depend on itself, found f -> g -> h -> f'),
    ('constant cycle', 'const int a = b;\nconst int b = a;\n' + MODEL, 1, 11, 'a constant must not depend on itself, found a -> b -> a'),
    ('label cycle', MODEL + 'label "p" = "q";\nlabel "q" = !"p";', 6, 7, 'a label must not depend on itself, found p -> q -> p'),
    ('unknown label', command('  [] "p" -> true;'), 5, 6, 'unknown label "p"; define it'),
    ('built-in label in guard', command('  [] "init" -> true;'), 5, 6, 'label "init" must be used in properties only'),
    ('built-in label defined', MODEL + 'label "deadlock" = x=1;', 6, 7, 'label "deadlock" is built in and must not be defined'),
    ('label twice', MODEL + 'label "p" = x=1;\nlabel "p" = x=2;', 7, 7, "'p' must be defined only once, found a label and a label in line 6"),
    ('label not bool', MODEL + 'label "p" = x+1;', 6, 13, 'label "p" must be of type bool, found int'),
    ('guard not bool', command('  [] x -> true;'), 5, 6, 'a guard must be of type bool, found int'),
    ('probability bool', command('  [] true -> b : true;'), 5, 14, 'a probability must be of type int or double, found bool'),
    ('interval bool', command('  [] true -> [0,b] : true;'), 5, 17, 'a probability must be of type int or double, found bool'),
    ('double into int', command("  [] true -> (x'=x/2);"), 5, 18, "the new value of 'x' must be of type int, found double"),
    ('int into bool', command("  [] true -> (b'=1);"), 5, 18, "the new value of 'b' must be of type bool, found int"),
    ('compare bool and int', command('  [] b=1 -> true;'), 5, 6, "both sides of '=' must be of one type, found bool and int"),
    ('and of int', command('  [] b & x -> true;'), 5, 10, "an operand of '&' must be of type bool, found int"),
    ('minus of bool', command('  [] -b -> true;'), 5, 7, "the operand of '-' must be of type int or double, found bool"),
    ('choice mixed', command('  [] (b ? 1 : false) -> true;'), 5, 11, "both results of '?' must be of one type, found int and bool"),
    ('mod of double', command('  [] mod(x,2.0)=0 -> true;'), 5, 12, "an argument of 'mod' must be of type int, found double"),
    ('arity', command('  [] pow(x)=0 -> true;'), 5, 6, "'pow' must have 2 argument(s), found 1"),
    ('foreign variable', MODEL + "module n\n  y : bool;\n  [] true -> (x'=1);\nendmodule", 8, 15, "module 'n' must assign its own variables only, found 'x'"),
    ('unknown variable', command("  [] true -> (z'=1);"), 5, 15, "an assigned variable must be declared, found 'z'"),
    ('assigned twice', command("  [] true -> (x'=1)&(x'=2);"), 5, 22, "a variable must be assigned only once in an update, found 'x'"),
    ('synchronised global', 'global g : bool;\n' + command("  [a] true -> (g'=true);"), 6, 16, "a command with an action must not assign a global variable; use [], found 'g'"),
    ('empty range', 'module m\n  x : [3..1];\nendmodule', 2, 8, "the range of 'x' must not be empty, found [3..1]"),
    ('variable in range', 'module m\n  x : [0..1];\n  y : [0..x];\nendmodule', 3, 11, "expected a constant expression, found 'x'"),
    ('double range', 'module m\n  x : [0..1.5];\nendmodule', 2, 11, "a bound of 'x' must be of type int, found double"),
    ('no range', 'module m\n  x : int init 2;\nendmodule', 2, 7, "an int must have a range, which may be wide; write x : [0..1000000]"),
    ('init out of range', 'module m\n  x : [0..1] init 2;\nendmodule', 2, 19, "the initial value of 'x' must be in [0..1], found 2"),
    ('init of wrong type', 'module m\n  x : bool init 0;\nendmodule', 2, 17, "the initial value of 'x' must be of type bool, found int"),
    ('init twice', 'module m\n  x : [0..1] init 0;\nendmodule\ninit x=1 endinit', 2, 19, "'x' must have no initial value, as the model has 'init ... endinit'"),
    ('undefined constants', 'const int N;\nconst double p;\nconst int unused;\nmodule m\n  x : [0..N];\n  [] true -> p:(x\'=0) + 1-p:true;\nendmodule', 1, 11, 'every constant must have a value, found none for N, p; give `constants={"N": ..., "p": ...}`'),
    ('constant of wrong type', 'const int N = 1.5;\n' + MODEL, 1, 15, "constant 'N' = 1.5 must be of type int, found double"),
    ('negative power', 'const int N = pow(2,-1);\n' + MODEL, 1, 15, 'an integer power must have an exponent >= 0, found -1; use 2.0'),
    ('mod of zero', 'const int N = mod(5,0);\n' + MODEL, 1, 15, "the second argument of 'mod' must be > 0, found 0"),
    ('overflow', 'const int N = 65536*65536;\n' + MODEL, 1, 15, 'an integer must fit in 32 bits, found a larger result'),
    ('unknown base', MODEL + 'module n = k [x=y] endmodule', 6, 8, "unknown module 'k'; it must be defined in the model"),
    ('incomplete renaming', MODEL + 'module n = m [a=c] endmodule', 6, 8, "module 'n' must rename every variable of 'm', found none for 'x'"),
    ('renamed twice', MODEL + 'module n = m [x=y, x=z] endmodule', 6, 20, "'x' must be renamed only once"),
    ('renamed in a circle', 'module n = k [x=y] endmodule\nmodule k = n [y=x] endmodule', 1, 8, 'a renamed module must not depend on itself, found n -> k -> n'),
    ('rewards twice', MODEL + 'rewards "r" true : 1; endrewards\nrewards "r" true : 2; endrewards', 7, 9, "'r' must be defined only once, found a reward structure and a reward structure in line 6"),
    ('reward of unknown action', MODEL + 'rewards\n  [c] true : 1;\nendrewards', 7, 3, "unknown action 'c'; it must be the action of a command"),
    ('reward not a number', MODEL + 'rewards\n  true : true;\nendrewards', 7, 10, 'a reward must be of type int or double, found bool'),
    ('multi in a model', 'const int k = multi(1);\n' + MODEL, 1, 15, "the multi-objective 'multi(...)' is not supported; ask for each objective by itself"),
]
# fmt: on

PROPERTY_MODEL = """mdp
const int N = 2;
module m
  x : [0..N];
  b : bool;
  [a] true -> (x'=1);
endmodule
label "one" = x=1;
rewards "r" true : 1; endrewards
"""

# fmt: off
PROPERTIES = [
    ('misspelt filter', 'fiter(max, P=? [ F x=1 ], x=0)', 1, 10, "expected '(', found ','; did you mean 'filter' instead of 'fiter'?"),
    ('misspelt quantifier', 'Pmaxmn=? [ F x=1 ]', 1, 8, "expected an expression, found '?'; did you mean 'Pmaxmin' instead of 'Pmaxmn'?"),
    ('misspelt filter name', 'filter(mx, P=? [ F x=1 ], x=0)', 1, 8, "unknown filter 'mx'; there are state, min, max, avg, sum, count, forall, exists, first, print, printall; did you mean 'max'?"),
    ('misspelt function', 'flor(x)=1', 1, 1, "unknown name 'flor'; it must be a constant, formula or variable"),
    ('no query', 'P [ F x=1 ]', 1, 3, "expected '<', '<=', '=', '>', '>=', 'max' or 'min', found '['"),
    ('no path', 'P=? [ ]', 1, 7, "expected a path formula, found ']'"),
    ('unclosed', 'P=? [ F x=1', 1, 12, "expected 'R', 'U', 'W', ']' or an operator, found the end of the text"),
    ('path outside P', '(F x=1)', 1, 2, 'a path formula must stand inside P or R, for example P=? [ F x=1 ]'),
    ('temporal at top', 'F x=1', 1, 1, "expected a state formula, found 'F'; write path formulas inside P or R, and below other operators in parentheses"),
    ('R without operator', 'R [ F x=1 ]', 1, 3, "expected '<', '<=', '=', '>', '>=', 'max', 'min' or '{', found '['"),
    ('two quantifiers too many', 'Pmaxminmax=? [ F x=1 ]', 1, 12, "expected an expression, found '?'; did you mean 'Pminmax' instead of 'Pmaxminmax'?"),
    ('P inside a bound', 'P>=P=? [ X b ] [ F b ]', 1, 4, 'expected a constant expression'),
    ('unknown filter', 'filter(mean, P=? [ F b ])', 1, 8, "unknown filter 'mean'; there are state, min, max, avg, sum, count, forall, exists, first, print, printall"),
    ('braces after C', 'R=? [ C{gamma=1}<=3 ]', 1, 9, "expected 'discount=...' in the braces after 'C'"),
    ('unknown name', 'P=? [ F y=1 ]', 1, 9, "unknown name 'y'; it must be a constant, formula or variable"),
    ('unknown label', 'P=? [ F "two" ]', 1, 9, 'unknown label or property "two"; the labels are "one"'),
    ('operand not bool', 'P=? [ F x ]', 1, 9, "an operand of 'F' must be of type bool, found int"),
    ('P of a number', 'P=? [ x+1 ]', 1, 7, 'the formula inside P must be of type bool, found int'),
    ('bound out of range', 'P>=1.5 [ F b ]', 1, 4, 'the bound of P must be in the range 0..1, found 1.5'),
    ('bound with variable', 'P>=x [ F b ]', 1, 4, "expected a constant expression, found 'x'"),
    ('negative steps', 'P=? [ F<=-1 b ]', 1, 10, 'a number of steps must be >= 0, found -1'),
    ('double steps', 'P=? [ F<=1.5 b ]', 1, 10, 'a number of steps must be of type int, found double'),
    ('empty steps', 'P=? [ F[3,2] b ]', 1, 8, 'steps must be [a,b] with a <= b, found [3,2]'),
    ('no steps', 'P=? [ G<0 b ]', 1, 8, 'steps must be <k with k >= 1, found <0'),
    ('steps of X', 'P=? [ X<=3 b ]', 1, 8, "'X' must have no bound on steps"),
    ('discount out of range', 'R=? [ C{discount=1.5} ]', 1, 18, 'a discount factor must be in the range 0..1, found 1.5'),
    ('discount not a number', 'R=? [ C{discount=0/0} ]', 1, 18, 'a discount factor must be in the range 0..1, found nan'),
    ('unknown rewards', 'R{"s"}=? [ F b ]', 1, 1, 'unknown rewards "s"; the model has "r"'),
    ('reward number', 'R{2}=? [ F b ]', 1, 3, 'the number of a reward structure must be in 1..1, found 2'),
    ('filter of bool', 'filter(avg, b)', 1, 13, "the operand of 'avg' must be of type int or double, found bool"),
    ('filter of number', 'filter(forall, x)', 1, 16, "the operand of 'forall' must be of type bool, found int"),
    ('filter states', 'filter(min, x, x)', 1, 16, 'the states of a filter must be of type bool, found int'),
    ('undefined constant', 'const int k;\nP=? [ F<=k b ]', 1, 11, 'every constant must have a value, found none for k; give `constants={"k": ...}`'),
    ('constant again', 'const int N = 1;\nP=? [ F b ]', 1, 11, "'N' must not be defined again, the model has it"),
    ('label again', 'label "one" = b;\nP=? [ F "one" ]', 1, 7, "'one' must not be defined again, the model has it"),
    ('property cycle', '"p": P>0 [ F "q" ];\n"q": P>0 [ F "p" ];', 1, 1, 'a property must not depend on itself, found p -> q -> p'),
    ('two names', '"p": P>0 [ F b ];\n"p": P>0 [ X b ];', 2, 1, "'p' must be defined only once, found a property and a property in line 1"),
    ('reward without path', 'R=? [ b ]', 1, 7, 'R must be over a path formula, C, C<=k, C{discount=d} or I=k; write F before a state formula'),
    ('E', 'E [ G F b ]', 1, 1, "'E [ ... ]' is not supported; use Pmax=? [ ... ] > 0"),
    ('A', '"p": A [ F b ]', 1, 6, "'A [ ... ]' is not supported; use Pmin=? [ ... ] >= 1"),
    ('discount of F', 'R=? [ F{discount=0.9} b ]', 1, 9, "expected a name in double quotes, found 'discount'; only C has a discount, written C{discount=0.9}"),
    ('discount of Storm', 'R=? [ C<=3 discount=0.9 ]', 1, 12, "expected ']', found 'discount'; only C has a discount, written C{discount=0.9}"),
    ('states in braces', 'P=? [ F b {x=0}{max} ]', 1, 11, "expected 'R', 'U', 'W', ']' or an operator, found '{'; choose states by filter(min, P=? [ ... ], states)"),
    ('argmin', 'filter(argmin, x)', 1, 8, "unknown filter 'argmin'; there are state, min, max, avg, sum, count, forall, exists, first, print, printall"),
    ('reward without bound', 'P=? [ F{"r"} b ]', 1, 7, 'expected a bound after the reward of \'F\', as in F{"r"}<=5'),
    ('budget', 'P=? [ F{"r"}>=2 b ]', 1, 13, 'a lower bound on rewards is not supported; use <= or <, as in F{"r"}<=5'),
    ('budget of nothing', 'P=? [ F^{rew{"nothing"}<=2} b ]', 1, 24, 'unknown rewards "nothing"; the model has "r"'),
    ('budget word', 'P=? [ F^{row{"r"}<=2} b ]', 1, 10, "expected rew{\"...\"}<=... in the braces after '^'"),
    ('multi', 'multi(Pmax=? [ F b ], P>=0.5 [ G b ])', 1, 1, "the multi-objective 'multi(...)' is not supported; ask for each objective by itself"),
    ('game', '<<1>> Pmax=? [ F b ]', 1, 1, "the game operator '<<...>>' is not supported; write P or R for the agent, as in Pmaxmin=?"),
    ('automaton', 'P=? [ HOA: {"a.hoa", "p" <- b} ]', 1, 7, "an automaton ('HOA: {...}') is not supported; write the formula (`automaton=read_automaton(FILE)`)"),
]
# fmt: on


@pytest.mark.parametrize(
    ("text", "line", "column", "reason"),
    [row[1:] for row in MODELS],
    ids=[row[0] for row in MODELS],
)
def test_bad_model(text, line, column, reason):
    """A bad model is refused with file, line, column, message, source line and caret."""
    with pytest.raises(PrismError) as caught:
        check_model(parse_model(text, "bad.prism"))
    shown = text.split("\n")[line - 1]
    assert str(caught.value) == (
        f"bad.prism:{line}:{column}: {reason}\n{shown}\n{' ' * (column - 1)}^"
    )


def check_first(text, model):
    """Read a property file and check its first property."""
    file = parse_property_file(text, "bad.props")
    return check_property(file.properties[0], file, model)


@pytest.mark.parametrize(
    ("text", "line", "column", "reason"),
    [row[1:] for row in PROPERTIES],
    ids=[row[0] for row in PROPERTIES],
)
def test_bad_property(text, line, column, reason):
    """A bad property is refused with file, line, column, message, source line and caret."""
    model = check_model(parse_model(PROPERTY_MODEL))
    with pytest.raises(PrismError) as caught:
        check_first(text, model)
    shown = text.split("\n")[line - 1]
    assert str(caught.value) == (
        f"bad.props:{line}:{column}: {reason}\n{shown}\n{' ' * (column - 1)}^"
    )


def test_caret_follows_tabs():
    """The caret stands under the mistake also where the line has tabs."""
    with pytest.raises(PrismError) as caught:
        parse_model("dtmc\nmodule m\n\tx\t: 5;\nendmodule", "tabs.prism")
    assert str(caught.value).split("\n")[1:] == ["\tx\t: 5;", "\t \t  ^"]


def test_crlf_keeps_positions():
    """Lines that end in CRLF have the same positions, and no stray character in the message."""
    with pytest.raises(PrismError) as caught:
        parse_model("dtmc\r\nmodule m\r\n  x : 5;\r\nendmodule", "dos.prism")
    assert str(caught.value).startswith("dos.prism:3:7: ")
    assert "\r" not in str(caught.value)


def test_one_bad_property_spares_the_others():
    """A file with an unsupported property can still be used for the rest."""
    model = check_model(parse_model(PROPERTY_MODEL))
    file = parse_property_file(
        "E [ G F b ]; P=? [ F b ]; multi(P=? [ F b ]); const int k; P=? [ F<=k b ]"
    )
    refused = []
    for prop in file.properties:
        try:
            check_property(prop, file, model)
            refused.append(False)
        except PrismError:
            refused.append(True)
    assert refused == [True, False, True, True]
