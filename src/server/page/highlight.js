// Colours for code: comments, texts, numbers, words of the language. Families of languages, not
// grammars: enough to read by.
import { el } from "./dom.js";

const MOST_CHARACTERS = 60000;

const words = (text) => new Set(text.split(" "));

const C_WORDS = words(
  "abstract alignas as async await auto bool break case catch char class const constexpr continue def default defer delete do double dyn else " +
  "enum explicit export extends extern false final finally float fn for from func function go goto if impl implements import in inline int " +
  "interface let long loop match mod mut namespace new nil noexcept null nullptr operator override package private protected pub public " +
  "return self short signed sizeof static static_cast struct super switch template this throw trait true try type typedef typename typeof " +
  "undefined union unsafe unsigned use using val var virtual void volatile where while yield __global__ __device__ __shared__ size_t " +
  "int8_t int16_t int32_t int64_t uint8_t uint16_t uint32_t uint64_t u8 u16 u32 u64 i8 i16 i32 i64 f32 f64 usize string number boolean");
const PYTHON_WORDS = words(
  "False None True and as assert async await break class continue def del elif else except finally for from global if import in is " +
  "lambda nonlocal not or pass raise return self try while with yield match case print len range");
const SHELL_WORDS = words(
  "if then else elif fi for in do done while until case esac function return exit export local set unset source echo cd sudo");
const SQL_WORDS = words(
  "select from where insert into values update set delete create table drop alter add primary key foreign references join left right " +
  "inner outer full on group by order having limit offset as and or not null is in like between union all distinct case when then else " +
  "end index view with int integer text varchar boolean count sum avg min max");
const DATA_WORDS = words("true false null yes no on off");

const DOUBLE = '"(?:[^"\\\\\\n]|\\\\.)*"?';
const SINGLE = "'(?:[^'\\\\\\n]|\\\\.)*'?";
const NUMBER = "\\b(?:0[xX][0-9a-fA-F_]+|0b[01_]+|\\d[\\d_]*(?:\\.\\d+)?(?:[eE][+-]?\\d+)?)[a-zA-Z]{0,3}\\b";
const WORD = "[A-Za-z_$][\\w$]*";

const family = (comment, text, known, foldsCase = false) =>
  ({ pattern: new RegExp(`(${comment})|(${text})|(${NUMBER})|(${WORD})`, "g"), known, foldsCase });

const C = family("//[^\\n]*|/\\*[^]*?(?:\\*/|$)", `${DOUBLE}|${SINGLE}|\`(?:[^\`\\\\]|\\\\[^])*\`?`, C_WORDS);
const PYTHON = family("#[^\\n]*", `"""[^]*?(?:"""|$)|'''[^]*?(?:'''|$)|${DOUBLE}|${SINGLE}`, PYTHON_WORDS);
const SHELL = family("(?<![^\\s;])#[^\\n]*", `${DOUBLE}|'[^']*'?`, SHELL_WORDS);
const SQL = family("--[^\\n]*|/\\*[^]*?(?:\\*/|$)", SINGLE, SQL_WORDS, true);
const DATA = family("(?<![^\\s])#[^\\n]*", `${DOUBLE}|${SINGLE}`, DATA_WORDS);
const MARKUP = family("<!--[^]*?(?:-->|$)", `${DOUBLE}`, words(""));

const FAMILIES = new Map([
  ["c cc cpp c++ cxx h hpp cu cuda cs csharp java js javascript jsx ts typescript tsx go rust rs swift kotlin kt scala dart php metal glsl hlsl wgsl zig css scss", C],
  ["py python py3 python3 mojo julia jl ruby rb nim", PYTHON],
  ["sh bash zsh shell console fish make makefile dockerfile cmake", SHELL],
  ["sql postgresql mysql sqlite", SQL],
  ["json jsonc json5 yaml yml toml ini conf", DATA],
  ["html xml svg vue", MARKUP],
].flatMap(([names, kind]) => names.split(" ").map((name) => [name, kind])));

function diffParts(text) {
  return text.split(/(?<=\n)/).map((line) => {
    const kind = line.startsWith("+") ? "added" : line.startsWith("-") ? "removed" : line.startsWith("@@") && "comment";
    return kind ? el("span", { class: kind }, line) : line;
  });
}

// Texts and spans, which together are the text.
export function highlighted(text, language) {
  const name = language.toLowerCase();
  if (text.length > MOST_CHARACTERS) return [text];
  if (name === "diff" || name === "patch") return diffParts(text);
  const kind = FAMILIES.get(name);
  if (kind === undefined) return [text];
  const parts = [];
  let done = 0;
  for (const found of text.matchAll(kind.pattern)) {
    const [all, comment, literal, number, word] = found;
    const isKnown = word !== undefined && kind.known.has(kind.foldsCase ? word.toLowerCase() : word);
    const style = comment !== undefined ? "comment" : literal !== undefined ? "literal" : number !== undefined ? "number" : isKnown && "word";
    if (!style || all === "") continue;
    parts.push(text.slice(done, found.index), el("span", { class: style }, all));
    done = found.index + all.length;
  }
  parts.push(text.slice(done));
  return parts;
}
