"""The demo model's closed world: every question with its one right answer. Needs only the standard library."""

import random
from dataclasses import dataclass

import facts as f

DAYS = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split()
MONTHS = ("January February March April May June July August September October November "
          "December").split()
ORDINALS = "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth".split()


@dataclass
class Fact:
    family: str
    questions: list  # paraphrases with one answer
    answer: str
    follow_up: str = ""  # a short question that means the same right after another fact of the family


def rows(table):
    """Lines `key: a, b, c` -> (key, [a, b, c])."""
    for line in table.strip().splitlines():
        key, values = line.split(":", 1)
        yield key.strip(), [v.strip() for v in values.split(",")]


def entries(table):
    """The comma separated entries of a table that may span lines."""
    return [e.strip() for e in table.replace("\n", ",").split(",") if e.strip()]


def bars(table):
    """The |-separated entries of a table that may span lines."""
    return [e.strip() for e in table.replace("\n", "|").split("|") if e.strip()]


def pairs(table):
    return [e.split(" ") for e in entries(table)]


def an(word):
    return ("an " if word[0] in "aeiou" else "a ") + word


def cap(text):
    return text[0].upper() + text[1:]


def countries():
    for c, (capital, continent, language, money) in rows(f.COUNTRIES):
        yield Fact("capital", [f"What is the capital of {c}?", f"What's the capital of {c}?",
                               f"Which city is the capital of {c}?", f"Tell me the capital of {c}.",
                               f"Name the capital of {c}.", f"{c}'s capital?", f"Capital of {c}?"],
                   f"The capital of {c} is {capital}.", f"And {c}?")
        yield Fact("capital_of", [f"{capital} is the capital of which country?",
                                  f"Which country has the capital {capital}?",
                                  f"Of which country is {capital} the capital?",
                                  f"What country is {capital} in?", f"Where is {capital}?"],
                   f"{capital} is the capital of {c}.", f"And {capital}?")
        yield Fact("continent", [f"Where is {c}?", f"On which continent is {c}?",
                                 f"Which continent is {c} on?", f"In what part of the world is {c}?"],
                   f"{c} is in {continent}.")
        yield Fact("language", [f"Which language do people speak in {c}?", f"What language is spoken in {c}?",
                                f"What do people speak in {c}?", f"Name the language of {c}."],
                   f"People in {c} speak {language}.")
        yield Fact("money", [f"What is the money of {c}?", f"Which currency does {c} use?",
                             f"What is the currency of {c}?", f"How do people pay in {c}?"],
                   f"The money of {c} is the {money}.")
        yield Fact("country", [f"Tell me about {c}.", f"What do you know about {c}?", f"What is {c}?",
                               f"Describe {c}."],
                   f"{c} is a country in {continent}. Its capital is {capital}. People there speak "
                   f"{language}, and the money is the {money}.")
        yield Fact("json", [f"Give me the capital of {c} as JSON.", f"Write the capital of {c} in JSON.",
                            f"Capital of {c} as a JSON object."],
                   f'{{"country": "{c}", "capital": "{capital}"}}')


def animals():
    kinds = ["mammal", "bird", "reptile", "amphibian", "insect"]
    for a, (plural, kind, sound, young, legs, home, food) in rows(f.ANIMALS):
        one = an(a)
        where = ("on " if home == "a farm" else "in ") + home
        yield Fact("sound", [f"What sound does {one} make?", f"What does {one} say?",
                             f"Which sound does {one} make?", f"How does {one} sound?"],
                   f"{cap(one)} {sound}.", f"And {one}?")
        yield Fact("young", [f"What is a young {a} called?", f"What is a baby {a} called?",
                             f"What do you call a baby {a}?", f"Name the young of {one}."],
                   f"A young {a} is called {an(young)}.")
        yield Fact("legs", [f"How many legs does {one} have?", f"How many legs do {plural} have?",
                            f"Number of legs of {one}?"], f"{cap(one)} has {legs} legs.")
        yield Fact("home", [f"Where does {one} live?", f"Where do {plural} live?", f"What is the home of {one}?"],
                   f"{cap(one)} lives {where}.")
        yield Fact("food", [f"What does {one} eat?", f"What do {plural} eat?", f"What is the food of {one}?"],
                   f"{cap(one)} eats {food}.")
        yield Fact("animal", [f"What is {one}?", f"Tell me about {plural}.", f"Describe {one}.",
                              f"What do you know about {plural}?"],
                   f"{cap(one)} is {an(kind)}. It lives {where}, it eats {food}, and it has {legs} legs. "
                   f"A young {a} is called {an(young)}.")
        for k in kinds:
            yield Fact("is_a", [f"Is {one} {an(k)}?", f"Are {plural} {k}s?"],
                       f"{'Yes' if k == kind else 'No'}, {one} is {an(kind)}.")


def words():
    for a, b in pairs(f.OPPOSITES):
        for x, y in ((a, b), (b, a)):
            yield Fact("opposite", [f"What is the opposite of {x}?", f"Opposite of {x}?",
                                    f"Tell me the opposite of {x}.", f"What's the opposite of {x}?",
                                    f"Which word is the opposite of {x}?"],
                       f"The opposite of {x} is {y}.", f"And of {x}?")
    for a, b in pairs(f.PAST):
        yield Fact("past", [f"What is the past tense of {a}?", f"Past tense of {a}?",
                            f"Tell me the past tense of {a}."], f"The past tense of {a} is {b}.", f"And of {a}?")
    for a, b in pairs(f.PLURALS):
        yield Fact("plural", [f"What is the plural of {a}?", f"Plural of {a}?", f"Tell me the plural of {a}."],
                   f"The plural of {a} is {b}.", f"And of {a}?")
    for word, translations in rows(f.WORDS):
        for language, t in zip(("Spanish", "French", "German"), translations):
            yield Fact("translate", [f"How do you say {word} in {language}?", f"What is {word} in {language}?",
                                     f"Translate {word} to {language}.", f"Say {word} in {language}."],
                       f'In {language}, "{word}" is "{t}".')
    for thing, what in rows(f.DEFINITIONS):
        what = ", ".join(what)
        yield Fact("define", [f"What is {thing}?", f"Define {thing}.", f"Explain what {thing} is.",
                              f"Can you tell me what {thing} is?"], f"{cap(thing)} is {what}.")


def colours():
    for e in entries(f.COLOURS):
        thing, colour = (x.strip() for x in e.split(":"))
        yield Fact("colour", [f"What colour is {thing}?", f"What color is {thing}?",
                              f"Which colour does {thing} have?",
                              f"What is the colour of {thing}?"], f"{cap(thing)} is {colour}.", f"And {thing}?")
    for e in entries(f.MIXES):
        two, colour = (x.strip() for x in e.split(":"))
        a, b = two.split()
        for x, y in ((a, b), (b, a)):
            yield Fact("mix", [f"What do you get when you mix {x} and {y}?", f"Mix {x} and {y}.",
                               f"Which colour do {x} and {y} make?", f"What colour is {x} plus {y}?"],
                       f"{cap(x)} and {y} make {colour}.", f"And {x} and {y}?")


def calendar():
    for names, noun in ((DAYS, "day"), (MONTHS, "month")):
        n = len(names)
        for i, x in enumerate(names):
            after, before = names[(i + 1) % n], names[i - 1]
            yield Fact(noun + "_after", [f"Which {noun} comes after {x}?", f"What {noun} comes after {x}?",
                                         f"What comes after {x}?", f"Which {noun} follows {x}?"],
                       f"{after} comes after {x}.", f"And after {x}?")
            yield Fact(noun + "_before", [f"Which {noun} comes before {x}?", f"What {noun} comes before {x}?",
                                          f"What comes before {x}?"], f"{before} comes before {x}.", f"And before {x}?")
            unit = "week" if noun == "day" else "year"
            yield Fact(noun + "_number", [f"What is the {ORDINALS[i]} {noun} of the {unit}?",
                                          f"Which {noun} is the {ORDINALS[i]} of the {unit}?"],
                       f"{x} is the {ORDINALS[i]} {noun} of the {unit}.")


def stories():
    for topic, (name, place, thing, helper, lesson) in rows(f.STORIES):
        who = topic.split(" ", 1)[1]
        rng = random.Random(topic)
        begin = rng.choice([f"Once upon a time there was {topic} named {name}, at home in {place}.",
                            f"Long ago, in {place}, there was {topic}. The name was {name}.",
                            f"There was once {topic} called {name}, who knew {place} very well."])
        middle = rng.choice([f"One morning, {name} found {thing} and did not know what to do with it.",
                             f"One day, {name} saw {thing} near the path and stopped.",
                             f"One evening, when the sun went down, {name} came upon {thing}."])
        meet = rng.choice([f'Then {helper} came by and said: "May I help you?"',
                           f'"This is strange," thought the {who}, and asked {helper} for help.',
                           f"Suddenly {helper} was there, and the two began to talk."])
        end = rng.choice([f"They worked on it together until the stars came out, and they laughed a lot.",
                          f"Together they found a good answer, and both were happy.",
                          f"It took the whole day, but in the end everything was fine."])
        yield Fact("story", [f"Tell me a story about {topic}.", f"Write a story about {topic}.",
                             f"Can you tell me a story about {topic}?", f"A story about {topic}, please.",
                             f"Tell a short story about {topic}."],
                   f"{begin} {middle} {meet} {end} So {name} learned that {lesson}. The end.")


def lists():
    for table in (f.SCIENCE, f.CHAT):
        for line in table.strip().splitlines():
            questions, answer = line.split(" => ")
            yield Fact("science" if table is f.SCIENCE else "chat", questions.split("|"),
                       answer.replace("\\n", "\n"))
    for q in bars(f.UNKNOWN):
        yield Fact("unknown", [q], "I do not know that. I am only a tiny demo model.")


def all_facts():
    out = []
    for make in (countries, animals, words, colours, calendar, stories, lists):
        out += make()
    seen = {}
    for fact in out:
        for q in list(fact.questions):
            if seen.setdefault(q.lower().rstrip("?.! "), fact.answer) != fact.answer:
                raise ValueError(f"two answers for {q!r}: {seen[q.lower().rstrip('?.! ')]!r}, {fact.answer!r}")
    return out


def split_held_out(all_of_them, seed=7):
    """Keeps one paraphrase of about one fact in twelve away from training: (training, held-out) question pairs."""
    rng = random.Random(seed)
    train, held = [], []
    for fact in all_of_them:
        out = rng.randrange(len(fact.questions)) if len(fact.questions) > 2 and rng.random() < 1 / 12 else -1
        for i, q in enumerate(fact.questions):
            (held if i == out else train).append((q, fact))
    return train, held
