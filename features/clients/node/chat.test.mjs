// The openai client from npm, unmodified, against sluice serve. SLUICE_URL,
// SLUICE_KEY and SLUICE_POOR_KEY (of an organization without money) come from the
// Go test that runs this; what each model does stands there.
import assert from "node:assert/strict";
import { test } from "node:test";
import OpenAI from "openai";

const url = process.env.SLUICE_URL;
const messages = [{ role: "user", content: "hello" }];

// connect gives a client that counts the HTTP requests it makes.
function connect({ key = process.env.SLUICE_KEY, ...options } = {}) {
  const sent = { requests: 0 };
  const counting = (...args) => (sent.requests++, fetch(...args));
  const client = new OpenAI({ baseURL: `${url}/v1`, apiKey: key, maxRetries: 0, fetch: counting, ...options });
  return { client, sent };
}

// chat is one call whose failure is the result.
async function failure(options, request, requestOptions) {
  const { client, sent } = connect(options);
  const error = await client.chat.completions.create({ messages, ...request }, requestOptions).then(
    (answer) => assert.fail(`answered: ${JSON.stringify(answer)}`),
    (error) => error,
  );
  return { error, sent };
}

const weather = (name) => ({
  type: "function",
  function: {
    name,
    description: "the weather of a city",
    parameters: { type: "object", properties: { city: { type: "string" } }, required: ["city"] },
  },
});

for (const model of ["plain", "fails-over"]) {
  test(`${model}: a whole answer`, async () => {
    const { client } = connect();
    const answer = await client.chat.completions.create({ model, messages });
    assert.equal(answer.choices[0].message.content.trim().split(/\s+/).length, 8);
    assert.equal(answer.choices[0].finish_reason, "stop");
    assert.equal(answer.usage.completion_tokens, 8);
    assert.match(answer._request_id, /^[0-9a-f-]{36}$/);
  });

  test(`${model}: a stream says the same`, async () => {
    const { client } = connect();
    const whole = await client.chat.completions.create({ model, messages });
    const stream = await client.chat.completions.create({
      model, messages, stream: true, stream_options: { include_usage: true },
    });
    let text = "", usage, finish;
    for await (const chunk of stream) {
      text += chunk.choices[0]?.delta?.content ?? "";
      finish = chunk.choices[0]?.finish_reason ?? finish;
      if (chunk.usage) {
        assert.deepEqual(chunk.choices, []);
        usage = chunk.usage;
      }
    }
    assert.equal(text, whole.choices[0].message.content);
    assert.equal(finish, "stop");
    assert.equal(usage.completion_tokens, 8);
  });
}

test("usage is sent in a stream only when asked for (S8)", async () => {
  const { client } = connect();
  for await (const chunk of await client.chat.completions.create({ model: "plain", messages, stream: true })) {
    assert.equal(chunk.choices.length, 1);
    assert.ok(!chunk.usage);
  }
});

for (const [model, names] of [["tool", ["a"]], ["tools", ["a", "b"]]]) {
  const tools = ["a", "b"].map(weather);

  test(`${model}: called in a whole answer`, async () => {
    const { client } = connect();
    const { choices: [choice] } = await client.chat.completions.create({ model, messages, tools });
    assert.equal(choice.finish_reason, "tool_calls");
    assert.equal(choice.message.tool_calls.length, names.length);
    for (const call of choice.message.tool_calls) assert.equal(typeof JSON.parse(call.function.arguments).city, "string");
  });

  test(`${model}: called in a stream, put together by the client`, async () => {
    const { client } = connect();
    const final = await client.chat.completions.stream({ model, messages, tools }).finalChatCompletion();
    const { finish_reason, message } = final.choices[0];
    assert.equal(finish_reason, "tool_calls");
    assert.equal(message.tool_calls.length, names.length);
    assert.equal(new Set(message.tool_calls.map((call) => call.id)).size, names.length);
    for (const call of message.tool_calls) assert.equal(typeof JSON.parse(call.function.arguments).city, "string");
  });
}

test("structured output is parsed by the client", async () => {
  const { client } = connect();
  const schema = {
    type: "object", properties: { city: { type: "string" }, degrees: { type: "integer" } },
    required: ["city", "degrees"], additionalProperties: false,
  };
  const answer = await client.chat.completions.parse({
    model: "obeys", messages, response_format: { type: "json_schema", json_schema: { name: "weather", strict: true, schema } },
  });
  const value = JSON.parse(answer.choices[0].message.content);
  assert.equal(typeof value.city, "string");
  assert.ok(Number.isInteger(value.degrees));
});

test("an image goes through", async () => {
  const { client } = connect();
  const pixel = "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
  const answer = await client.chat.completions.create({
    model: "fails-over",
    messages: [{ role: "user", content: [{ type: "text", text: "what is it?" }, { type: "image_url", image_url: { url: pixel } }] }],
  });
  assert.equal(answer.choices[0].finish_reason, "stop");
});

test("models are listed and found (P11)", async () => {
  const { client } = connect();
  const names = [];
  for await (const model of client.models.list()) names.push(model.id);
  assert.ok(names.includes("plain") && names.includes("tools"), names.join());
  assert.equal((await client.models.retrieve("plain")).id, "plain");
  await assert.rejects(client.models.retrieve("nothing"), OpenAI.NotFoundError);
});

// Faults of the caller: the client's own class for each, and no retry although the
// client would.
for (const [name, options, request, kind, code] of [
  ["an unknown key", { key: "sk-sluice-nobody" }, { model: "plain" }, OpenAI.AuthenticationError, "invalid_api_key"],
  ["an unknown model", {}, { model: "nothing" }, OpenAI.NotFoundError, "model_not_found"],
  ["a request that is none", {}, { model: "plain", messages: [] }, OpenAI.BadRequestError, "invalid_request"],
  ["no money left", { key: process.env.SLUICE_POOR_KEY }, { model: "plain" }, OpenAI.RateLimitError, "insufficient_quota"],
]) {
  test(`${name} is ${kind.name} and not retried`, async () => {
    const { error, sent } = await failure({ maxRetries: 2, ...options }, request);
    assert.ok(error instanceof kind, String(error));
    assert.equal(error.code, code);
    assert.match(error.requestID, /^[0-9a-f-]{36}$/);
    assert.equal(error.requestID, error.headers.get("request-id"));
    assert.equal(sent.requests, 1);
  });
}

test("a throttle says when to come back", async () => {
  const { error } = await failure({}, { model: "busy" });
  assert.ok(error instanceof OpenAI.RateLimitError, String(error));
  const seconds = Number(error.headers.get("retry-after"));
  const ms = Number(error.headers.get("retry-after-ms"));
  assert.ok(ms > 0 && seconds === Math.ceil(ms / 1000) && seconds <= 60, `${seconds} s, ${ms} ms`);
});

test("a stream that breaks after it has begun is an error, never a short answer (S3)", async () => {
  const { client } = connect();
  const stream = await client.chat.completions.create({ model: "breaks", messages, stream: true });
  let text = "";
  await assert.rejects(async () => {
    for await (const chunk of stream) text += chunk.choices[0]?.delta?.content ?? "";
  }, OpenAI.APIError);
  assert.notEqual(text, "");
});

test("a stream can be left (S7)", async () => {
  const { client } = connect();
  const stream = await client.chat.completions.create({ model: "stalls", messages, stream: true });
  for await (const _ of stream) break; // leaving the loop aborts the request
  assert.ok(stream.controller.signal.aborted);
});

test("the same idempotency key gets the same answer (I1)", async () => {
  const { client } = connect();
  const ask = () => client.chat.completions
    .create({ model: "plain", messages }, { headers: { "Idempotency-Key": "from-node" } }).withResponse();
  const [first, again] = [await ask(), await ask()];
  assert.deepEqual(again.data, first.data);
  assert.equal(again.response.headers.get("idempotent-replayed"), "true");
});
