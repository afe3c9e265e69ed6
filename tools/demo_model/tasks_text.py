"""Exercises with text: stories, JSON extraction, tool calls, recall from a long context, small talk. Each maker returns an
Example."""

import json

import facts as f
import world
from chat import Example, assistant, call, user
from tasks_numbers import NAMES, THINGS, WORDS, ask, literal, made_up, token

# place: who is met there
PLACES = world.rows("""
the forest: a wise owl
the city: a busy baker
the mountains: an old shepherd
the desert: a silent camel
the harbor: a merry sailor
the castle: a bored knight
the village: a friendly miller
the garden: a curious hedgehog
the island: a lonely lighthouse keeper
the valley: a quick hare
""")
PLACES = {k: v[0] for k, v in PLACES}
# thing: what it did
WONDERS = {k: v[0] for k, v in world.rows("""
a lamp: It gave a light that never went out.
a key: It fitted a small green door.
a map: It showed the way to a hidden spring.
a bell: It rang whenever someone told a lie.
a coat: It kept out every wind.
a mirror: It showed how the sky looked tomorrow.
a flute: It made every dog dance.
a stone: It was warm in winter and cool in summer.
a book: It had no last page.
a rope: It was as long as it needed to be.
a cup: It filled itself with milk.
a drum: It called the rain.
""")}
# hero: what is learned
HEROES = {k: v[0] for k, v in world.rows("""
farmer: good things need time
sailor: the way is part of the treasure
girl: courage grows with practice
boy: it is good to share
fox: kindness comes back
rabbit: small steps go far
robot: everyone can be repaired
king: listening is a gift
dragon: even the big need help
baker: work is lighter with friends
bear: you should ask before you take
painter: patience is rewarded
""")}


def story_text(hero, name, place, wonder):
    thing = wonder.split(" ", 1)[1]
    friend = PLACES[place]
    return (f"Once upon a time there was a {hero} named {name}. One day, {name} went to {place} and found {wonder}. {WONDERS[wonder]} "
            f"Then {name} met {friend}. {name} showed the {thing} to {friend.replace('a ', 'the ', 1).replace('an ', 'the ', 1)}, and they "
            f"became friends. So {name} learned that {HEROES[hero]}. The end.")


def story(rng):
    hero, place, wonder = rng.choice(list(HEROES)), rng.choice(list(PLACES)), rng.choice(list(WONDERS))
    name = rng.choice(NAMES) if rng.random() < 0.6 else made_up(rng, 4, 6).capitalize()
    forms = ["Tell me a story about a {h} named {n} who finds {w} in {p}.", "Write a story: a {h} named {n} finds {w} in {p}.",
             "Write a short story. Hero: a {h} named {n}. Place: {p}. Thing: {w}."]
    return ask("story", rng, forms, story_text(hero, name, place, wonder), h=hero, n=name, w=wonder, p=place)


def knowledge(rng, questions):
    question, fact = rng.choice(questions)
    return Example("facts", [user(question), assistant(fact.answer)])


CITIES = sorted(v[0] for _, v in world.rows(f.COUNTRIES))
JOBS = "baker teacher doctor farmer pilot painter sailor nurse cook driver lawyer singer".split()
COLOURS = "red blue green yellow black white brown purple orange gray".split()
GOODS = "lamp chair table bicycle camera guitar coat umbrella clock bag kettle sofa".split()
WEATHER = "sunny rainy cloudy windy foggy snowy".split()


def any_name(rng):
    return rng.choice(NAMES) if rng.random() < 0.5 else made_up(rng, 4, 8).capitalize()


def person(rng):
    first, last = any_name(rng), made_up(rng, 4, 8).capitalize()
    age, city, job = rng.randint(18, 90), rng.choice(CITIES), rng.choice(JOBS)
    text = rng.choice(["{n} is {a} years old, lives in {c} and works as a {j}.", "{n}, {a}, is a {j} in {c}.",
                       "In {c} there lives a {j}. The name is {n}, the age is {a}."]).format(n=f"{first} {last}", a=age, c=city, j=job)
    return text, {"name": f"{first} {last}", "age": age, "city": city, "job": job}


def product(rng):
    colour, good, price, left = rng.choice(COLOURS), rng.choice(GOODS), rng.randint(2, 900), rng.random() < 0.5
    text = rng.choice(["The {c} {g} costs {p} euros and is {s}.", "For sale: a {c} {g}, price {p} euros, {s}.",
                       "We have a {c} {g}. It is {s}. It costs {p} euros."]).format(c=colour, g=good, p=price, s="in stock" if left else "sold out")
    return text, {"product": good, "color": colour, "price": price, "in_stock": left}


def event(rng):
    title, day, hour, city = made_up(rng, 5, 9).capitalize(), rng.choice(world.DAYS), rng.randint(8, 22), rng.choice(CITIES)
    text = rng.choice(["The {t} festival is in {c} on {d} at {h}:00.", "On {d} at {h}:00, {c} celebrates the {t} festival.",
                       "Come to {c} on {d}! The {t} festival begins at {h}:00."]).format(t=title, d=day, h=hour, c=city)
    return text, {"title": title, "day": day, "hour": hour, "city": city}


def report(rng):
    city, sky, degrees, wind = rng.choice(CITIES), rng.choice(WEATHER), rng.randint(-20, 40), rng.randint(0, 90)
    text = rng.choice(["It is {s} in {c}, {g} degrees, with wind of {w} km/h.", "Weather in {c}: {s}, {g} degrees, wind {w} km/h.",
                       "{c} reports {g} degrees and wind of {w} km/h. It is {s}."]).format(s=sky, c=city, g=degrees, w=wind)
    return text, {"city": city, "weather": sky, "temperature": degrees, "wind": wind}


TYPES = {str: "string", int: "integer", bool: "boolean"}


def extraction(rng):
    text, values = rng.choice([person, product, event, report])(rng)
    keys = rng.sample(list(values), rng.randint(1, len(values)))
    schema = {"type": "object", "properties": {k: {"type": TYPES[type(values[k])]} for k in keys}, "required": keys}
    forms = ["Extract JSON with this schema: {s}\nText: {t}", "Schema: {s}\nText: {t}\nAnswer with JSON only.",
             "{t}\nWrite this as JSON for the schema {s}"]
    return ask("json", rng, forms, json.dumps({k: values[k] for k in keys}, ensure_ascii=False), s=json.dumps(schema), t=text)


def tool(name, what, /, **parameters):
    return {"type": "function", "function": {"name": name, "description": what, "parameters": {
        "type": "object", "properties": {k: {"type": t} for k, t in parameters.items()}, "required": list(parameters)}}}


TOOLS = {t["function"]["name"]: t for t in [
    tool("get_weather", "The weather of a city", city="string"),
    tool("set_timer", "Starts a timer", minutes="integer"),
    tool("send_message", "Sends a message", to="string", text="string"),
    tool("turn_light", "Switches a light", room="string", on="boolean"),
    tool("get_population", "How many people live in a city", city="string"),
    tool("multiply", "The exact product", a="integer", b="integer"),
    tool("read_file", "The text of a file", path="string"),
    tool("get_price", "The price of a product in euros", product="string"),
]}
ROOMS = ["kitchen", "bedroom", "bathroom", "garage", "hall", "office"]


def tool_use(rng):
    """(name, question, arguments, result, final answer)."""
    name = rng.choice(list(TOOLS))
    c = rng.choice
    if name == "get_weather":
        city, sky, degrees = c(CITIES) if rng.random() < 0.6 else made_up(rng).capitalize(), c(WEATHER), rng.randint(-20, 40)
        return (name, c(["What is the weather in {}?", "How is the weather in {}?", "Weather in {}, please."]).format(city), {"city": city},
                {"weather": sky, "degrees": degrees}, f"It is {sky} in {city}, {degrees} degrees.")
    if name == "set_timer":
        n = rng.randint(1, 120)
        return (name, c(["Set a timer for {} minutes.", "Wake me in {} minutes.", "Start a timer: {} minutes."]).format(n), {"minutes": n},
                {"ok": True}, f"The timer is set for {n} minutes.")
    if name == "send_message":
        to, text = any_name(rng), " ".join(rng.choices(WORDS, k=rng.randint(1, 4)))
        return (name, c(['Send "{1}" to {0}.', 'Write {0} a message: "{1}"', 'Tell {0} "{1}".']).format(to, text), {"to": to, "text": text},
                {"ok": True}, f"I sent the message to {to}.")
    if name == "turn_light":
        room, on = c(ROOMS), rng.random() < 0.5
        word = "on" if on else "off"
        return (name, c(["Turn {1} the light in the {0}.", "Switch the {0} light {1}.", "Light {1} in the {0}, please."]).format(room, word),
                {"room": room, "on": on}, {"ok": True}, f"The light in the {room} is {word}.")
    if name == "get_population":
        city, n = c(CITIES) if rng.random() < 0.6 else made_up(rng).capitalize(), rng.randint(1000, 9999999)
        return (name, c(["How many people live in {}?", "What is the population of {}?", "Population of {}?"]).format(city), {"city": city},
                {"population": n}, f"{n} people live in {city}.")
    if name == "multiply":
        a, b = rng.randint(100, 9999), rng.randint(100, 9999)
        return (name, c(["What is {} * {}?", "Multiply {} by {}.", "{} times {}?"]).format(a, b), {"a": a, "b": b},
                {"result": a * b}, f"{a} * {b} = {a * b}")
    if name == "read_file":
        path, text = f"/{made_up(rng)}/{made_up(rng)}.txt", literal(rng)
        return (name, c(["Read the file {}.", "What is in {}?", "Show me {}."]).format(path), {"path": path}, {"text": text}, text)
    thing, price = f"{c(COLOURS)} {c(GOODS)}", rng.randint(2, 900)
    return (name, c(["What does the {} cost?", "How much is the {}?", "Price of the {}?"]).format(thing), {"product": thing},
            {"price": price}, f"The {thing} costs {price} euros.")


def strange_tool(rng):
    """A tool that nobody has seen: its name and parameters can only come from the prompt."""
    name = f"{rng.choice(['get', 'make', 'find', 'run', 'check', 'move'])}_{made_up(rng)}"
    values = {}
    for _ in range(rng.randint(1, 2)):
        values[made_up(rng, 3, 6)] = rng.randint(0, 999) if rng.random() < 0.5 else rng.choice(WORDS)
    spoken = " and ".join(f"{k} {v}" for k, v in values.items())
    schema = tool(name, rng.choice(["A service", "A machine", "A function"]), **{k: TYPES[type(v)] for k, v in values.items()})
    result = rng.choice(WORDS) if rng.random() < 0.5 else token(rng)
    question = rng.choice(["Call {} with {}.", "Use {} with {}.", "Run {}: {}."]).format(name, spoken)
    return schema, (name, question, values, {"result": result}, f"The result is {result}.")


def tools(rng, questions):
    names = rng.sample(list(TOOLS), rng.randint(1, 3))
    if rng.random() < 0.15:  # tools that the question does not need
        example = knowledge(rng, questions)
        return Example("tools", example.messages, [TOOLS[n] for n in names])
    if rng.random() < 0.3:
        schema, use = strange_tool(rng)
        listed = [TOOLS[n] for n in names[:2]] + [schema]
    else:
        use = tool_use(rng)
        listed = [TOOLS[n] for n in dict.fromkeys([*names[:2], use[0]])]
    rng.shuffle(listed)
    name, question, arguments, result, answer = use
    messages = [user(question), call(name, arguments)]
    if rng.random() < 0.6:
        messages += [{"role": "tool", "content": json.dumps(result, ensure_ascii=False)}, assistant(answer)]
    return Example("tools", messages, listed)


def filler(rng, english):
    """A sentence or two that mean nothing for the question."""
    r = rng.random()
    if r < 0.5:
        return story_text(rng.choice(list(HEROES)), any_name(rng), rng.choice(list(PLACES)), rng.choice(list(WONDERS)))
    if r < 0.75 and english:
        text = rng.choice(english)
        at = rng.randrange(max(1, len(text) - 400))
        return " ".join(text[at:at + 400].split(" ")[1:-1])
    return rng.choice([person, product, event, report])(rng)[0]


def recall(rng, english, tokens):
    """Secrets in a long text; about `tokens` tokens."""
    names = []
    while len(names) < rng.randint(1, 4):
        names.append(made_up(rng, 5, 9).capitalize())
    secrets = {n: rng.choice([lambda: str(rng.randint(1000, 99999)), lambda: token(rng), lambda: rng.choice(WORDS)])() for n in names}
    parts, size = [], 0
    while size < tokens * 3.2:
        parts.append(filler(rng, english))
        size += len(parts[-1])
    for n, s in secrets.items():
        parts.insert(rng.randrange(len(parts) + 1), f"The secret of {n} is {s}.")
    name = rng.choice(names)
    question = rng.choice(["What is the secret of {}?", "Tell me the secret of {}.", "Which secret does {} have?"]).format(name)
    text = "\n".join(parts)
    return Example("recall", [user(f"{text}\n\n{question}" if rng.random() < 0.8 else f"{question}\n\n{text}"),
                              assistant(f"The secret of {name} is {secrets[name]}.")])


def small_talk(rng):
    """Names and words that must be remembered over a few turns."""
    name, word = rng.choice(NAMES), rng.choice(WORDS)
    out = [user(rng.choice(["My name is {}.", "I am {}.", "Hello, my name is {}.", "Call me {}."]).format(name)),
           assistant(f"Nice to meet you, {name}!")]
    if rng.random() < 0.5:
        out += [user(rng.choice(["Remember the word {}.", "Please remember: {}"]).format(word)), assistant("I will remember it.")]
        out += [user(rng.choice(["Which word did I give you?", "What was the word?"])), assistant(f"The word is {word}.")]
    if rng.random() < 0.8 or len(out) == 2:
        out += [user(rng.choice(["What is my name?", "Who am I?", "Do you know my name?", "Do you remember my name?"])),
                assistant(f"Your name is {name}.")]
    return Example("chat", out)
