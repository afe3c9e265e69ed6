// The official JavaScript SDKs take the scripted turn of agents.py: chat, responses and messages, at once and as streams.
//
//   tests/clients/agents.py --only node-sdks --node-path FOLDER/node_modules
import {writeFileSync} from 'node:fs';
import {createRequire} from 'node:module';

const require = createRequire(process.env.NODE_PATH + '/x.js');
const OpenAI = require('openai').default;
const Anthropic = require('@anthropic-ai/sdk').default;
const [url, prompt, result] = process.argv.slice(2);
const schema = {type: 'object', properties: {path: {type: 'string'}}, required: ['path']};
const description = 'Write a file';

function write(path) {
  writeFileSync(path, result + '\n');
  return result;
}

async function chat(stream) {
  const client = new OpenAI({baseURL: url + '/v1', apiKey: 'local-key', maxRetries: 0});
  const messages = [{role: 'user', content: prompt}];
  const tools = [{type: 'function', function: {name: 'write_file', description, parameters: schema}}];
  for (let i = 0; i < 3; ++i) {
    const body = {model: 'm', messages, tools};
    const answer = stream ? await client.chat.completions.stream(body).finalChatCompletion()
                          : await client.chat.completions.create(body);
    const message = answer.choices[0].message;
    if (!message.tool_calls?.length) return message.content;
    messages.push(message);
    for (const call of message.tool_calls) {
      const {path} = JSON.parse(call.function.arguments);
      messages.push({role: 'tool', tool_call_id: call.id, content: write(path)});
    }
  }
}

async function responses(stream) {
  const client = new OpenAI({baseURL: url + '/v1', apiKey: 'local-key', maxRetries: 0});
  const input = [{role: 'user', content: prompt}];
  const tools = [{type: 'function', name: 'write_file', description, parameters: schema, strict: false}];
  for (let i = 0; i < 3; ++i) {
    const body = {model: 'm', input, tools};
    const answer = stream ? await client.responses.stream(body).finalResponse() : await client.responses.create(body);
    const calls = answer.output.filter((item) => item.type === 'function_call');
    if (!calls.length) {
      return answer.output.flatMap((item) => item.content ?? []).map((part) => part.text).join('');
    }
    input.push(...answer.output);
    for (const call of calls) {
      input.push({type: 'function_call_output', call_id: call.call_id, output: write(JSON.parse(call.arguments).path)});
    }
  }
}

async function messages(stream) {
  const client = new Anthropic({baseURL: url, apiKey: 'local-key', maxRetries: 0});
  const history = [{role: 'user', content: prompt}];
  const tools = [{name: 'write_file', description, input_schema: schema}];
  for (let i = 0; i < 3; ++i) {
    const body = {model: 'm', max_tokens: 500, messages: history, tools};
    const answer = stream ? await client.messages.stream(body).finalMessage() : await client.messages.create(body);
    const uses = answer.content.filter((block) => block.type === 'tool_use');
    if (!uses.length) return answer.content[0].text;
    history.push({role: 'assistant', content: answer.content});
    history.push({
      role: 'user',
      content: uses.map((use) => ({type: 'tool_result', tool_use_id: use.id, content: write(use.input.path)})),
    });
  }
}

for (const turn of [chat, responses, messages]) {
  for (const stream of [false, true]) {
    const text = await turn(stream);
    console.log(turn.name, stream ? 'stream' : 'whole', text);
    if (!text?.startsWith('TQ-FINAL')) throw new Error(`${turn.name}: expected the last text, found ${text}`);
  }
}
