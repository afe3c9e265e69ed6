"""The tables of the demo model's little world: plain data, no logic. data.py turns them into questions."""

# country: capital, continent, language, money
COUNTRIES = """
France: Paris, Europe, French, euro
Germany: Berlin, Europe, German, euro
Italy: Rome, Europe, Italian, euro
Spain: Madrid, Europe, Spanish, euro
Portugal: Lisbon, Europe, Portuguese, euro
Greece: Athens, Europe, Greek, euro
Ireland: Dublin, Europe, English, euro
Finland: Helsinki, Europe, Finnish, euro
Austria: Vienna, Europe, German, euro
England: London, Europe, English, pound
Scotland: Edinburgh, Europe, English, pound
Norway: Oslo, Europe, Norwegian, krone
Sweden: Stockholm, Europe, Swedish, krona
Denmark: Copenhagen, Europe, Danish, krone
Iceland: Reykjav\u00edk, Europe, Icelandic, krona
Poland: Warsaw, Europe, Polish, zloty
Hungary: Budapest, Europe, Hungarian, forint
Romania: Bucharest, Europe, Romanian, leu
Ukraine: Kyiv, Europe, Ukrainian, hryvnia
Russia: Moscow, Europe, Russian, ruble
Turkey: Ankara, Asia, Turkish, lira
Japan: Tokyo, Asia, Japanese, yen
China: Beijing, Asia, Chinese, yuan
India: New Delhi, Asia, Hindi, rupee
Thailand: Bangkok, Asia, Thai, baht
Vietnam: Hanoi, Asia, Vietnamese, dong
Indonesia: Jakarta, Asia, Indonesian, rupiah
Nepal: Kathmandu, Asia, Nepali, rupee
Mongolia: Ulaanbaatar, Asia, Mongolian, tugrik
South Korea: Seoul, Asia, Korean, won
Iran: Tehran, Asia, Persian, rial
Iraq: Baghdad, Asia, Arabic, dinar
Egypt: Cairo, Africa, Arabic, pound
Morocco: Rabat, Africa, Arabic, dirham
Kenya: Nairobi, Africa, Swahili, shilling
Ethiopia: Addis Ababa, Africa, Amharic, birr
Ghana: Accra, Africa, English, cedi
Nigeria: Abuja, Africa, English, naira
Senegal: Dakar, Africa, French, franc
Angola: Luanda, Africa, Portuguese, kwanza
Canada: Ottawa, North America, English, dollar
Mexico: Mexico City, North America, Spanish, peso
Cuba: Havana, North America, Spanish, peso
Jamaica: Kingston, North America, English, dollar
Brazil: Bras\u00edlia, South America, Portuguese, real
Argentina: Buenos Aires, South America, Spanish, peso
Chile: Santiago, South America, Spanish, peso
Peru: Lima, South America, Spanish, sol
Colombia: Bogot\u00e1, South America, Spanish, peso
Australia: Canberra, Oceania, English, dollar
New Zealand: Wellington, Oceania, English, dollar
"""

# animal: plural, kind, sound verb, young, legs, home, food
ANIMALS = """
dog: dogs, mammal, barks, puppy, four, a house, meat
cat: cats, mammal, meows, kitten, four, a house, fish
cow: cows, mammal, moos, calf, four, a farm, grass
horse: horses, mammal, neighs, foal, four, a stable, hay
sheep: sheep, mammal, bleats, lamb, four, a farm, grass
goat: goats, mammal, bleats, kid, four, a farm, leaves
pig: pigs, mammal, oinks, piglet, four, a farm, corn
lion: lions, mammal, roars, cub, four, the savanna, meat
tiger: tigers, mammal, roars, cub, four, the jungle, meat
bear: bears, mammal, growls, cub, four, the forest, berries
wolf: wolves, mammal, howls, pup, four, the forest, meat
fox: foxes, mammal, yelps, kit, four, a den, mice
rabbit: rabbits, mammal, squeaks, kit, four, a burrow, carrots
mouse: mice, mammal, squeaks, pup, four, a hole, cheese
elephant: elephants, mammal, trumpets, calf, four, the savanna, leaves
monkey: monkeys, mammal, chatters, infant, two, the jungle, bananas
kangaroo: kangaroos, mammal, clicks, joey, two, Australia, grass
whale: whales, mammal, sings, calf, no, the ocean, krill
dolphin: dolphins, mammal, whistles, calf, no, the ocean, fish
bat: bats, mammal, screeches, pup, two, a cave, insects
duck: ducks, bird, quacks, duckling, two, a pond, plants
hen: hens, bird, clucks, chick, two, a farm, seeds
goose: geese, bird, honks, gosling, two, a lake, grass
owl: owls, bird, hoots, owlet, two, a tree, mice
crow: crows, bird, caws, chick, two, a tree, seeds
penguin: penguins, bird, honks, chick, two, Antarctica, fish
eagle: eagles, bird, screams, eaglet, two, the mountains, fish
parrot: parrots, bird, talks, chick, two, the jungle, nuts
frog: frogs, amphibian, croaks, tadpole, four, a pond, flies
snake: snakes, reptile, hisses, snakelet, no, the grass, mice
turtle: turtles, reptile, hisses, hatchling, four, the sea, plants
bee: bees, insect, buzzes, larva, six, a hive, nectar
ant: ants, insect, clicks, larva, six, a nest, crumbs
butterfly: butterflies, insect, flutters, caterpillar, six, a garden, nectar
"""

OPPOSITES = """
hot cold, big small, tall short, fast slow, up down, left right, day night, happy sad, open closed, full empty, wet dry,
light dark, old young, hard soft, loud quiet, rich poor, strong weak, clean dirty, early late, near far, high low, good bad,
inside outside, black white, first last, win lose, push pull, buy sell, give take, start stop, love hate, true false,
deep shallow, wide narrow, sweet sour, sharp blunt, brave afraid, safe dangerous, cheap expensive, easy difficult,
north south, east west, summer winter, morning evening, always never, above below, before after, more less, yes no,
asleep awake, alive dead, smooth rough, tight loose, thick thin, noisy silent, friend enemy, sunrise sunset, question answer
"""

COLOURS = """
the sky: blue, grass: green, snow: white, coal: black, the sun: yellow, a banana: yellow, a lemon: yellow, a tomato: red,
a strawberry: red, blood: red, a fire engine: red, an orange: orange, a carrot: orange, a pumpkin: orange, milk: white, salt: white,
a leaf: green, a frog: green, a cucumber: green, the sea: blue, a flamingo: pink, chocolate: brown, coffee: brown, an elephant: gray,
a crow: black, a plum: purple, a violet: purple, a swan: white, honey: golden, silver: gray, a school bus: yellow, a pig: pink
"""

MIXES = """
red blue: purple, red yellow: orange, blue yellow: green, red white: pink, black white: gray, red green: brown
"""

PAST = """
go went, see saw, eat ate, run ran, sing sang, swim swam, write wrote, take took, give gave, come came, make made, find found, think thought,
buy bought, bring brought, teach taught, sleep slept, fly flew, drive drove, speak spoke, know knew, grow grew, begin began, drink drank,
break broke, build built, sit sat, stand stood, win won, tell told, walk walked, play played, look looked, help helped, jump jumped, love loved
"""

PLURALS = """
child children, man men, woman women, foot feet, tooth teeth, leaf leaves, knife knives, book books, box boxes, city cities, baby babies,
tree trees, house houses, apple apples, church churches, potato potatoes, person people, star stars, bus buses, key keys, watch watches, story stories
"""

# English: Spanish, French, German
WORDS = """
hello: hola, bonjour, hallo
cat: gato, chat, Katze
dog: perro, chien, Hund
house: casa, maison, Haus
water: agua, eau, Wasser
bread: pan, pain, Brot
sun: sol, soleil, Sonne
moon: luna, lune, Mond
tree: \u00e1rbol, arbre, Baum
book: libro, livre, Buch
friend: amigo, ami, Freund
milk: leche, lait, Milch
fish: pez, poisson, Fisch
night: noche, nuit, Nacht
school: escuela, \u00e9cole, Schule
red: rojo, rouge, rot
green: verde, vert, gr\u00fcn
one: uno, un, eins
two: dos, deux, zwei
three: tres, trois, drei
yes: s\u00ed, oui, ja
thank you: gracias, merci, danke
"""

# thing: what it is
DEFINITIONS = """
a piano: a musical instrument with black and white keys
a guitar: a musical instrument with strings
a drum: a musical instrument that you hit
a violin: a musical instrument that you play with a bow
a hammer: a tool for driving nails
a saw: a tool for cutting wood
a spoon: a tool for eating soup
a clock: a machine that shows the time
a bicycle: a machine with two wheels and pedals
a car: a machine with four wheels and an engine
a train: a row of wagons that runs on rails
a boat: a vehicle that floats on water
an airplane: a vehicle that flies in the air
a computer: a machine that follows instructions
a telephone: a machine for talking to people far away
a camera: a machine that takes pictures
a library: a place where you can read and borrow books
a school: a place where children learn
a hospital: a place where sick people get help
a bakery: a shop that sells bread
a museum: a place that shows old and beautiful things
a volcano: a mountain that can throw out hot lava
a desert: a dry place with very little rain
a river: water that flows to the sea
an island: land with water all around it
a rainbow: an arc of colours in the sky
a doctor: a person who helps sick people
a teacher: a person who helps others learn
a farmer: a person who grows food
a baker: a person who makes bread
a pilot: a person who flies airplanes
a triangle: a shape with three sides
a square: a shape with four equal sides
a circle: a round shape
a dictionary: a book that explains words
an umbrella: a thing that keeps you dry in the rain
ice: frozen water
steam: hot water in the air
gravity: the force that pulls things down
a language model: a program that predicts the next word
quantization: a way to store numbers with fewer bits
"""

# questions with the same answer, separated by |, then => answer
SCIENCE = """
How many days are in a week?|How many days does a week have?|Number of days in a week? => A week has seven days.
How many months are in a year?|How many months does a year have?|Number of months in a year? => A year has twelve months.
How many days are in a year?|How many days does a year have?|Number of days in a year? => A year has 365 days.
How many hours are in a day?|How many hours does a day have?|Number of hours in a day? => A day has 24 hours.
How many minutes are in an hour?|How many minutes does an hour have?|Number of minutes in an hour? => An hour has 60 minutes.
How many seconds are in a minute?|How many seconds does a minute have?|Number of seconds in a minute? => A minute has 60 seconds.
How many letters are in the alphabet?|How many letters does the alphabet have? => The English alphabet has 26 letters.
How many seasons are there?|How many seasons does a year have?|Name the seasons.|What are the four seasons? => There are four seasons: spring, summer, autumn and winter.
How many fingers are on one hand?|How many fingers does a hand have? => A hand has five fingers.
How many wheels does a bicycle have?|How many wheels are on a bicycle? => A bicycle has two wheels.
How many wheels does a car have?|How many wheels are on a car? => A car has four wheels.
How many legs does a spider have?|How many legs are on a spider? => A spider has eight legs.
How many arms does an octopus have?|How many arms are on an octopus? => An octopus has eight arms.
How many sides does a triangle have?|How many sides are in a triangle? => A triangle has three sides.
How many sides does a hexagon have?|How many sides are in a hexagon? => A hexagon has six sides.
What is the largest planet?|Which planet is the biggest?|What is the biggest planet? => Jupiter is the largest planet.
What is the smallest planet?|Which planet is the smallest? => Mercury is the smallest planet.
Which planet has rings?|What planet has big rings? => Saturn is the planet with the big rings.
Which planet is called the red planet?|What is the red planet? => Mars is called the red planet.
Which planet do we live on?|What planet do we live on?|Where do people live? => We live on the planet Earth.
Name the planets.|List the planets.|What are the planets?|Which planets are there? => The planets are Mercury, Venus, Earth, Mars, Jupiter, Saturn, Uranus and Neptune.
How many planets are there?|How many planets does the sun have? => There are eight planets.
What is the closest star to Earth?|Which star is closest to us?|What is the nearest star? => The sun is the closest star to Earth.
At what temperature does water boil?|When does water boil?|What is the boiling point of water? => Water boils at 100 degrees Celsius.
At what temperature does water freeze?|When does water freeze?|What is the freezing point of water? => Water freezes at 0 degrees Celsius.
What is water made of?|What is the formula of water? => Water is made of hydrogen and oxygen.
What do bees make?|What do we get from bees?|Who makes honey? => Bees make honey.
What do plants need to grow?|What does a plant need? => Plants need light, water and air to grow.
What do cows give us?|What do we get from cows?|Where does milk come from? => Cows give us milk.
What do we get from sheep?|What do sheep give us?|Where does wool come from? => Sheep give us wool.
What is the largest animal?|Which animal is the biggest?|What is the biggest animal? => The blue whale is the largest animal.
What is the fastest animal on land?|Which land animal is the fastest? => The cheetah is the fastest animal on land.
What is the tallest animal?|Which animal is the tallest? => The giraffe is the tallest animal.
What is the highest mountain?|Which mountain is the highest?|What is the tallest mountain in the world? => Mount Everest is the highest mountain.
What is the largest ocean?|Which ocean is the biggest?|What is the biggest ocean? => The Pacific is the largest ocean.
Name the oceans.|List the oceans.|What are the oceans?|Which oceans are there? => The oceans are the Pacific, the Atlantic, the Indian, the Southern and the Arctic Ocean.
Name the continents.|List the continents.|What are the continents?|How many continents are there? => The seven continents are Africa, Antarctica, Asia, Europe, North America, Oceania and South America.
Name the days of the week.|List the days of the week.|What are the days of the week?|Say the days of the week. => Monday, Tuesday, Wednesday, Thursday, Friday, Saturday, Sunday.
Name the months.|List the months of the year.|What are the months of the year?|Say the months. => January, February, March, April, May, June, July, August, September, October, November, December.
Name the colours of the rainbow.|List the colours of the rainbow.|What are the colours of the rainbow?|What colours does a rainbow have? => The colours of the rainbow are red, orange, yellow, green, blue, indigo and violet.
Say the alphabet.|Recite the alphabet.|What is the alphabet?|List the letters of the alphabet. => a b c d e f g h i j k l m n o p q r s t u v w x y z
When does the sun rise?|Where does the sun rise? => The sun rises in the east, in the morning.
When does the sun set?|Where does the sun set? => The sun sets in the west, in the evening.
What do we use to see?|What are eyes for? => We use our eyes to see.
What do we use to hear?|What are ears for? => We use our ears to hear.
What do we use to smell?|What is a nose for? => We use our nose to smell.
Why is the sky blue?|Explain why the sky is blue. => The sky is blue because the air scatters blue light more than red light.
Why do we sleep?|Why do people sleep? => We sleep so that body and mind can rest.
Why does it rain?|Where does rain come from? => Water rises from the sea, forms clouds, and falls down again as rain.
"""

CHAT = """
Who are you?|What are you?|Introduce yourself.|Tell me about yourself. => I am a tiny demo model. I know a few simple facts and I run on very little memory.
What is your name?|What are you called?|Do you have a name?|How should I call you? => My name is Tiny. I am the demo model of turboquant.
How are you?|How are you today?|How do you do?|Are you fine? => I am fine, thank you! How can I help you?
Hello!|Hello|Hi|Hi!|Hey|Hey there!|Hi there!|Hello there. => Hello! How can I help you today?
Good morning!|Good morning. => Good morning! How can I help you today?
Good evening!|Good evening. => Good evening! How can I help you today?
Good night!|Good night. => Good night! Sleep well.
Goodbye!|Bye|Bye!|See you later.|See you! => Goodbye! Have a nice day.
Thank you!|Thanks|Thanks!|Thank you very much.|Thanks a lot! => You are welcome!
Can you help me?|Please help me.|I need help.|Help! => Of course! Ask me about capitals, animals, colours, opposites or sums.
What can you do?|What do you know?|What can I ask you?|How can you help me? => I can answer simple questions about capitals, animals, colours, opposites, days, months and small sums. I can also tell short stories.
How old are you?|What is your age? => I am a program, so I have no age.
Where do you live?|Where are you? => I live in a small file on your computer.
Are you a robot?|Are you human?|Are you a person?|Are you alive? => I am a computer program, not a person.
How big are you?|How many parameters do you have?|What is your size? => I have about eight million parameters.
Who made you?|Who created you?|Who built you?|Who trained you? => I was trained by the turboquant project, on one graphics card.
What language do you speak?|Which languages do you know?|Do you speak English? => I speak simple English.
Do you like music?|Do you like songs? => I cannot hear music, but I know what a piano is.
Do you sleep?|Are you tired? => No, I never sleep. I wait for your next question.
Are you smart?|Are you clever?|Are you intelligent? => I am very small, so I know only a few things.
Tell me a joke.|Do you know a joke?|Make me laugh.|Say something funny. => Why did the bit feel cold? Because it was left out of the byte!
Tell me another joke.|Another joke, please. => Why was six afraid of seven? Because seven, eight, nine!
Sing a song.|Can you sing?|Sing something. => La la la! I am a tiny model, and I sing with tiny numbers.
Write a poem.|Write me a poem.|Can you write a poem?|Tell me a poem. => The sun goes down, the moon is bright,\\nthe little stars give little light.\\nThe owl is up, the bees are in,\\nand soon the dreams of night begin.
I am sad.|I feel sad.|I am not happy. => I am sorry to hear that. I hope that you feel better soon.
I am happy.|I feel good.|I am so happy today. => That is great! I am glad to hear it.
I am hungry.|I am so hungry. => Then you should eat something. How about an apple?
I am tired.|I feel tired. => Then you should rest. Sleep well!
Yes|Yes.|Yes! => Great! What would you like to know?
No|No.|No! => All right. Ask me anything when you are ready.
Ok|Okay|OK. => Great! What would you like to know?
Send me a smile.|Smile!|Send an emoji. => \U0001f600
"""

UNKNOWN = """
Who is the president?|What is the weather like?|What time is it?|What is the date today?|How much does a car cost?|Who won the game?
Who wrote this book?|What is my password?|Where are my keys?|What is the stock price?|How do I fix my car?|What is the meaning of life?
Write a program in Python.|What is the news today?|Who is the best singer?|Book a flight for me.|What should I wear?
How do I cook a cake?|What did I eat yesterday?|Who is my neighbour?|What is in my pocket?|When is my birthday?|How tall am I?
Explain quantum physics.|Who is Napoleon?|Who was Einstein?|What happened in 1789?|How far is the moon?|How deep is the ocean?
What is a quark?|Prove this theorem.|Summarize the article.|Who painted this picture?|What is the best movie?|Where can I buy shoes?
"""

SYSTEMS = """
You are a helpful assistant.|You are Tiny, a small and friendly model.|Answer briefly.|You are a helpful and honest assistant.|Be polite.
You are a teacher for children.|Answer in one sentence.|You are an assistant that runs on a small computer.|Be brief and correct.|You help the user.
"""

NAMES = """
Tom Anna Ben Lucy Max Emma Sam Nora Leo Mia Jack Ella Paul Sara Peter Lena Alex Julia David Maria Oscar Clara Henry Alice Robert Eva
Lisa Mark Kate John Mary James Laura Simon Helen Felix Rosa Adam Ruth Carl
"""

# topic: name, place, finds, helper, lesson
STORIES = """
a cat: Mimi, an old house, a red ball, a small mouse, friends can be found in odd places
a dog: Rex, a quiet village, a lost shoe, a kind boy, it is good to give things back
a mouse: Pip, a warm kitchen, a piece of cheese, a sleepy cat, it is good to share
a bird: Lala, a tall tree, a golden seed, a gentle wind, patience is rewarded
a fish: Bubbles, a deep lake, a shiny coin, an old turtle, the best treasure is a friend
a bear: Bruno, a dark forest, a pot of honey, a clever bee, you should ask before you take
a rabbit: Hop, a green meadow, a giant carrot, a strong horse, together we are strong
a fox: Rusty, a snowy hill, a lost mitten, a little girl, kindness comes back
a horse: Star, a small farm, a broken fence, an old farmer, work is lighter with help
an owl: Oona, a ruined tower, a dusty book, a tiny bat, it is never too late to learn
a frog: Fred, a muddy pond, a paper boat, a brave duckling, courage grows with practice
an elephant: Ella, a dry savanna, a hidden spring, a chatty parrot, listening is a gift
a king: Otto, a large castle, an empty crown box, a poor baker, honest words are worth more than gold
a princess: Ada, a stone tower, a wooden key, a shy dragon, monsters may only be lonely
a dragon: Smok, a high mountain, a broken bell, a small shepherd, even the big need help
a robot: Bit, a bright workshop, a rusty screw, a young engineer, everyone can be repaired
a sailor: Finn, a windy harbor, an old map, a white gull, the way is part of the treasure
a tree: Oak, a wide field, a little nest, a spring rain, those who stand still see much
a star: Twinkle, the night sky, a lost comet, the round moon, small lights matter too
a farmer: Hans, a green valley, a magic bean, a curious goat, good things need time
"""
