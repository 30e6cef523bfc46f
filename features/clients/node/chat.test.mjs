// The client openai from npm, unmodified, against the Chat Completions of sluice serve.
import assert from "node:assert/strict";
import { test } from "node:test";
import OpenAI from "openai";
import { checkCalls, checkRetry, checkWeather, city, counting, destinations, key as ownKey, pixel, poorKey, url, uuid, weather, words } from "./support.mjs";

const messages = [{ role: "user", content: "hello" }];

// connect gives a client that counts the HTTP requests it makes.
function connect({ key = ownKey, ...options } = {}) {
  const { sent, fetch } = counting();
  const client = new OpenAI({ baseURL: `${url}/v1`, apiKey: key, maxRetries: 0, fetch, ...options });
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

const tools = ["a", "b"].map((name) => ({ type: "function", function: { name, description: "the weather of a city", parameters: city } }));

// named are models of the behaviours of that name: at a provider of this dialect, and at
// those of all protocols behind a faulty one of another.
const named = (...behaviours) => behaviours.flatMap((name) => [name, ...destinations.map((to) => `${to}/${name}`)]);

for (const model of named("plain", "fails-over")) {
  test(`${model}: a whole answer`, async () => {
    const { client } = connect();
    const answer = await client.chat.completions.create({ model, messages });
    assert.equal(words(answer.choices[0].message.content), 8);
    assert.equal(answer.choices[0].finish_reason, "stop");
    assert.equal(answer.usage.completion_tokens, 8);
    assert.match(answer._request_id, uuid);
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

for (const model of named("tool", "tools")) {
  const names = model.endsWith("tool") ? ["a"] : ["a", "b"];
  const calls = ({ tool_calls }) => tool_calls.map((call) => [call.id, call.function.name, JSON.parse(call.function.arguments)]);

  test(`${model}: called in a whole answer`, async () => {
    const { client } = connect();
    const { choices: [choice] } = await client.chat.completions.create({ model, messages, tools });
    assert.equal(choice.finish_reason, "tool_calls");
    checkCalls(calls(choice.message), names);
  });

  test(`${model}: called in a stream, put together by the client`, async () => {
    const { client } = connect();
    const final = await client.chat.completions.stream({ model, messages, tools }).finalChatCompletion();
    const { finish_reason, message } = final.choices[0];
    assert.equal(finish_reason, "tool_calls");
    checkCalls(calls(message), names);
  });
}

for (const model of named("obeys")) test(`${model}: structured output is parsed by the client`, async () => {
  const { client } = connect();
  const answer = await client.chat.completions.parse({
    model, messages, response_format: { type: "json_schema", json_schema: { name: "weather", strict: true, schema: weather } },
  });
  checkWeather(JSON.parse(answer.choices[0].message.content));
});

for (const model of named("plain")) test(`${model}: an image goes through`, async () => {
  const { client } = connect();
  const image_url = { url: `data:image/png;base64,${pixel}` };
  const answer = await client.chat.completions.create({
    model, messages: [{ role: "user", content: [{ type: "text", text: "what is it?" }, { type: "image_url", image_url }] }],
  });
  assert.match(answer.choices[0].message.content, /images=1/);
});

for (const to of destinations) test(`${to}: a limit and a filter are finish reasons`, async () => {
  const { client } = connect();
  for (const [name, finish] of [["long", "length"], ["filtered", "content_filter"]]) {
    const request = { model: `${to}/${name}`, messages, max_completion_tokens: 20 };
    assert.equal((await client.chat.completions.create(request)).choices[0].finish_reason, finish);
    let streamed;
    for await (const { choices: [choice] } of await client.chat.completions.create({ ...request, stream: true })) {
      streamed = choice.finish_reason ?? streamed;
    }
    assert.equal(streamed, finish);
  }
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
  ["no money left", { key: poorKey }, { model: "plain" }, OpenAI.RateLimitError, "insufficient_quota"],
]) {
  test(`${name} is ${kind.name} and not retried`, async () => {
    const { error, sent } = await failure({ maxRetries: 2, ...options }, request);
    assert.ok(error instanceof kind, String(error));
    assert.equal(error.code, code);
    assert.match(error.requestID, uuid);
    assert.equal(error.requestID, error.headers.get("request-id"));
    assert.equal(sent.requests, 1);
  });
}

for (const model of named("busy")) test(`${model}: a throttle says when to come back`, async () => {
  const { error } = await failure({}, { model });
  assert.ok(error instanceof OpenAI.RateLimitError, String(error));
  checkRetry((name) => error.headers.get(name));
});

for (const model of named("breaks")) test(`${model}: a stream that breaks after it has begun is an error, never a short answer (S3)`, async () => {
  const { client } = connect();
  const stream = await client.chat.completions.create({ model, messages, stream: true });
  let text = "";
  await assert.rejects(async () => {
    for await (const chunk of stream) text += chunk.choices[0]?.delta?.content ?? "";
  }, OpenAI.APIError);
  assert.notEqual(text, "");
});

for (const model of named("stalls")) test(`${model}: a stream can be left (S7)`, async () => {
  const { client } = connect();
  const stream = await client.chat.completions.create({ model, messages, stream: true });
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
