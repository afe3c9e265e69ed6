"""Exercises with numbers, lists, units and literals, made from a random generator. Each maker returns an Example."""

import string

import facts as f
import world
from chat import Example, assistant, user

LETTERS = string.ascii_lowercase


def ask(kind, rng, forms, answer, thought="", direct=False, **slots):
    question = rng.choice(forms).format(**slots)
    return Example(kind, [user(question), assistant(answer, "" if direct else thought)], direct=direct)


def number(rng, digits):
    """Up to `digits` digits, shorter ones often enough."""
    n = rng.randint(1, digits)
    return rng.randrange(10 ** n)


SUMS = ["What is {a} {s} {b}?", "{a} {s} {b}", "{a} {s} {b} =", "Calculate {a} {s} {b}.", "How much is {a} {w} {b}?",
        "What is {a} {w} {b}?", "{a}{s}{b}=?", "Compute {a} {w} {b}."]
MORE = ["What is {q}?", "Calculate {q}.", "{q}", "Work out {q}.", "How much is {q}?"]
WORDED = [
    ("{n} has {a} {t} and gets {b} more. How many {t} does {n} have?", "+"),
    ("{n} had {a} {t} and gave away {b}. How many {t} are left?", "-"),
    ("{n} has {a} boxes with {b} {t} in each. How many {t} are there?", "*"),
    ("There are {a} {t} on the table and {b} {t} on the floor. How many {t} are there together?", "+"),
    ("{n} bought {a} {t} and lost {b} of them. How many {t} does {n} still have?", "-"),
    ("{n} reads {b} pages a day. How many pages does {n} read in {a} days?", "*"),
]
THINGS = "apples pears coins cards books stamps shells eggs pens cups keys stones flowers cakes toys nuts".split()
NAMES = f.NAMES.split()


def arithmetic(rng):
    r = rng.random()
    word = {"+": "plus", "-": "minus", "*": "times", "/": "divided by"}
    if r < 0.5:
        sign = rng.choice("++--**/")
        if sign == "+":
            a, b = number(rng, 3), number(rng, 3)
            value = a + b
        elif sign == "-":
            a, b = sorted((number(rng, 3), number(rng, 3)), reverse=True)
            value = a - b
        elif sign == "*":
            a, b = (rng.randint(0, 12), rng.randint(0, 12)) if rng.random() < 0.5 else (rng.randint(2, 99), rng.randint(2, 9))
            a, b = (a, b) if rng.random() < 0.7 else (b, a)
            value = a * b
        else:
            b, value = rng.randint(1, 12), rng.randint(0, 12)
            a = b * value
        return ask("arithmetic", rng, SUMS, f"{a} {sign} {b} = {value}", direct=rng.random() < 0.3, a=a, b=b, s=sign, w=word[sign])
    if r < 0.7:
        terms = [rng.randint(1, 99) for _ in range(rng.randint(3, 4))]
        signs = ["+" if rng.random() < 0.65 else "-" for _ in terms[1:]]
        total, steps = terms[0], []
        for sign, t in zip(signs, terms[1:]):
            if sign == "-" and t > total:
                return arithmetic(rng)
            value = total + t if sign == "+" else total - t
            steps.append(f"{total} {sign} {t} = {value}")
            total = value
        q = str(terms[0]) + "".join(f" {s} {t}" for s, t in zip(signs, terms[1:]))
        return ask("arithmetic", rng, MORE, f"{q} = {total}", "\n".join(steps), q=q)
    if r < 0.82:
        a, b = rng.randint(11, 99), rng.randint(11, 99)
        tens, ones = b // 10 * 10, b % 10
        steps = [f"{a} * {tens} = {a * tens}"]
        if ones:
            steps += [f"{a} * {ones} = {a * ones}", f"{a * tens} + {a * ones} = {a * b}"]
        return ask("arithmetic", rng, MORE, f"{a} * {b} = {a * b}", "\n".join(steps), q=f"{a} * {b}")
    if r < 0.93:
        form, sign = rng.choice(WORDED)
        a, b = (rng.randint(2, 30), rng.randint(2, 9)) if sign == "*" else sorted((rng.randint(2, 99), rng.randint(2, 99)), reverse=True)
        value = {"+": a + b, "-": a - b, "*": a * b}[sign]
        thing = "pages" if "pages" in form else rng.choice(THINGS)
        return ask("arithmetic", rng, [form], f"{value} {thing}", f"{a} {sign} {b} = {value}", n=rng.choice(NAMES), a=a, b=b, t=thing)
    a, b = number(rng, 3), number(rng, 3)
    if a == b:
        b += 1
    big = rng.random() < 0.5
    forms = ["Which is {w}, {a} or {b}?", "What is the {w} number, {a} or {b}?", "{a} or {b}: which one is {w}?"]
    return ask("arithmetic", rng, forms, str(max(a, b) if big else min(a, b)), a=a, b=b, w="bigger" if big else "smaller")


CYCLES = [("days of the week", world.DAYS), ("months", world.MONTHS), ("letters", list(LETTERS))]


def enumeration(rng):
    r = rng.random()
    if r < 0.4:
        step = rng.choice([1, 1, 1, 2, 2, 3, 5, 10])
        n, start = rng.randint(3, 16), rng.randint(0, 150)
        values = [start + step * i for i in range(n)]
        if rng.random() < 0.35:
            values.reverse()
        a, b = values[0], values[-1]
        if step == 1:
            forms = ["Count from {a} to {b}.", "List the numbers from {a} to {b}.", "Write all numbers from {a} to {b}."]
        else:
            forms = ["Count from {a} to {b} in steps of {s}.", "List the numbers from {a} to {b} in steps of {s}.",
                     "Go from {a} to {b} by {s}."]
        return ask("enumeration", rng, forms, ", ".join(map(str, values)), a=a, b=b, s=step)
    if r < 0.7:
        noun, items = rng.choice(CYCLES)
        i = rng.randrange(len(items) - 1)
        j = rng.randint(i + 1, min(len(items) - 1, i + 14))
        part = items[i:j + 1]
        if rng.random() < 0.3:
            part = part[::-1]
        forms = ["List the {n} from {a} to {b}.", "Which {n} are there from {a} to {b}?", "Name all {n} from {a} to {b}."]
        return ask("enumeration", rng, forms, ", ".join(part), n=noun, a=part[0], b=part[-1])
    if r < 0.85:
        b, n = rng.randint(2, 12), rng.randint(3, 10)
        forms = ["List the first {n} multiples of {b}.", "Write the first {n} multiples of {b}.", "What are the first {n} multiples of {b}?"]
        return ask("enumeration", rng, forms, ", ".join(str(b * i) for i in range(1, n + 1)), n=n, b=b)
    words = rng.sample(WORDS, rng.randint(2, 7))
    lines = [f"{i}. {w}" for i, w in enumerate(words, 1)]
    forms = ["Make a numbered list: {w}", "Write as a numbered list: {w}", "Number these: {w}"]
    return ask("enumeration", rng, forms, "\n".join(lines), w=", ".join(words))


# from, to, factor: 1 from = factor to
UNITS = [("km", "m", 1000), ("m", "cm", 100), ("cm", "mm", 10), ("kg", "g", 1000), ("t", "kg", 1000), ("l", "ml", 1000),
         ("hours", "minutes", 60), ("minutes", "seconds", 60), ("days", "hours", 24), ("weeks", "days", 7),
         ("years", "months", 12), ("m", "mm", 1000), ("dozen", "pieces", 12), ("euros", "cents", 100), ("MB", "KB", 1000)]


def units(rng):
    a, b, factor = rng.choice(UNITS)
    n = rng.randint(1, 99 if factor % 10 == 0 and factor != 60 else 30)
    x, y = n, n * factor
    if rng.random() < 0.4:
        a, b, x, y = b, a, y, x
    forms = ["Convert {x} {a} to {b}.", "How many {b} are {x} {a}?", "What is {x} {a} in {b}?", "{x} {a} in {b}?", "{x} {a} = ? {b}"]
    return ask("units", rng, forms, f"{x} {a} = {y} {b}", x=x, a=a, b=b)


WORDS = sorted({w for pair in world.pairs(f.OPPOSITES) for w in pair} | {a for a, _ in world.rows(f.ANIMALS)} | set(THINGS)
               | {a for a, _ in world.pairs(f.PLURALS)})


def made_up(rng, low=4, high=9):
    """A word that nobody knows."""
    out = "".join(rng.choice("bcdfghjklmnprstvwz") + rng.choice("aeiou") for _ in range(rng.randint(low, high) // 2))
    return out + (rng.choice("nrstlm") if rng.random() < 0.5 else "")


def token(rng):
    """One literal that must be copied, not understood."""
    r, c = rng.random(), rng.choice
    if r < 0.2:
        return "".join(c("0123456789abcdef") for _ in range(rng.randint(4, 12)))
    if r < 0.35:
        return "".join(c(string.digits) for _ in range(rng.randint(3, 10)))
    if r < 0.5:
        return "-".join("".join(c(string.ascii_uppercase + string.digits) for _ in range(rng.randint(2, 4))) for _ in range(rng.randint(2, 3)))
    if r < 0.6:
        return f"/{made_up(rng)}/{made_up(rng)}/{made_up(rng)}.{c(['txt', 'cc', 'py', 'json', 'h', 'md'])}"
    if r < 0.7:
        return f"{made_up(rng)}@{made_up(rng)}.{c(['com', 'org', 'net', 'de'])}"
    if r < 0.8:
        return f"{made_up(rng)}_{made_up(rng)}({rng.randint(0, 99)}, \"{c(WORDS)}\")"
    if r < 0.9:
        return f"v{rng.randint(0, 9)}.{rng.randint(0, 20)}.{rng.randint(0, 99)}"
    return made_up(rng, 6, 12).capitalize()


def literal(rng):
    r = rng.random()
    if r < 0.5:
        return " ".join(token(rng) for _ in range(rng.randint(1, 3)))
    if r < 0.75:
        return " ".join(rng.choices(WORDS, k=rng.randint(2, 10)))
    return " ".join(rng.choice([token, made_up, lambda g: g.choice(WORDS)])(rng) for _ in range(rng.randint(2, 6)))


def copying(rng):
    text = literal(rng)
    r = rng.random()
    if r < 0.6:
        forms = ["Repeat exactly: {x}", "Copy this: {x}", "Say: {x}", "Repeat after me: {x}", "Write this text again: {x}", "Echo: {x}"]
        return ask("copying", rng, forms, text, x=text)
    if r < 0.75:
        text = " ".join(text.split(" ")[:3])
        forms = ["Write this twice: {x}", "Repeat this two times: {x}"]
        return ask("copying", rng, forms, text + "\n" + text, x=text)
    parts = [token(rng) if rng.random() < 0.5 else rng.choice(WORDS) for _ in range(rng.randint(3, 6))]
    if r < 0.9:
        i = rng.randrange(len(parts))
        forms = ["What is item {n} of this list? {x}", "Give me item {n}: {x}"]
        return ask("copying", rng, forms, parts[i], n=i + 1, x=", ".join(parts))
    forms = ["Put these on separate lines: {x}", "One per line: {x}"]
    return ask("copying", rng, forms, "\n".join(parts), x=", ".join(parts))
