// JSON whose numbers keep every digit: JSON.parse would round 12345678901234567890 and 1.10.

/** A number as it is written. */
export class Num {
  constructor(text) {
    this.text = text;
  }
}

const NUMBER = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y;
const SPACE = /[ \t\n\r]*/y;
const STRING = /"(?:[^"\\\u0000-\u001f]|\\.)*"/y;
const DEEPEST = 200;

export const isNumber = (text) => new RegExp(`^(?:${NUMBER.source})$`).test(text);

/** `text` as Map, array, string, Num, true, false or null. Throws SyntaxError in words. */
export function parse(text) {
  let at = 0;

  const fail = (words) => {
    const line = text.slice(0, at).split("\n");
    throw new SyntaxError(`${words} (line ${line.length}, column ${line.at(-1).length + 1})`);
  };
  const match = (pattern) => {
    pattern.lastIndex = at;
    const found = pattern.exec(text)?.[0];
    if (found !== undefined) at += found.length;
    return found;
  };
  const skip = () => match(SPACE);
  const take = (sign) => {
    skip();
    if (text[at] !== sign) return false;
    at += 1;
    return true;
  };
  const need = (sign) => take(sign) || fail(`Here must stand ${sign}`);

  function string() {
    skip();
    const start = at;
    const found = match(STRING);
    if (found === undefined) return fail("Here must stand a text in double quotes");
    try {
      return JSON.parse(found);
    } catch {
      at = start;
      return fail("This text has an escape that JSON does not know");
    }
  }

  function object(depth) {
    const members = new Map();
    if (take("}")) return members;
    do {
      const name = string();
      if (members.has(name)) fail(`“${name}” stands here twice`);
      need(":");
      members.set(name, value(depth + 1));
    } while (take(","));
    need("}");
    return members;
  }

  function list(depth) {
    const items = [];
    if (take("]")) return items;
    do items.push(value(depth + 1)); while (take(","));
    need("]");
    return items;
  }

  function value(depth) {
    if (depth > DEEPEST) fail("This is nested too deeply");
    skip();
    if (take("{")) return object(depth);
    if (take("[")) return list(depth);
    if (text[at] === '"') return string();
    for (const [word, meaning] of [["true", true], ["false", false], ["null", null]]) {
      if (!text.startsWith(word, at)) continue;
      at += word.length;
      return meaning;
    }
    const number = match(NUMBER);
    return number ? new Num(number) : fail("Here must stand a value");
  }

  const whole = value(0);
  skip();
  if (at < text.length) fail("Something stands after the end");
  return whole;
}

/** The opposite of `parse`, on several lines. */
export function write(value, line = "\n") {
  const deeper = `${line}  `;
  if (value instanceof Num) return value.text;
  if (value instanceof Map) {
    if (!value.size) return "{}";
    const members = [...value].map(([name, part]) => `${JSON.stringify(name)}: ${write(part, deeper)}`);
    return `{${deeper}${members.join(`,${deeper}`)}${line}}`;
  }
  if (Array.isArray(value)) {
    if (!value.length) return "[]";
    return `[${deeper}${value.map((part) => write(part, deeper)).join(`,${deeper}`)}${line}]`;
  }
  return JSON.stringify(value);
}
