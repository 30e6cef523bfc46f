// What the scripts share. SLUICE_URL, SLUICE_KEY, SLUICE_POOR_KEY (of an organization
// without money) and SLUICE_KEEPER_KEY (of one that lets answers be kept) come from the
// Go test that runs them; what each model does stands there.
import assert from "node:assert/strict";

export const url = process.env.SLUICE_URL;
export const key = process.env.SLUICE_KEY;
export const poorKey = process.env.SLUICE_POOR_KEY;
export const keeperKey = process.env.SLUICE_KEEPER_KEY;

// destinations are the protocols of providers: "anthropic/tool" is a model that calls a
// tool, at a provider that speaks Messages.
export const destinations = ["openai", "openai-responses", "anthropic", "bedrock", "gemini"];

// refusing are those of them that have a word for a refusal.
export const refusing = ["openai", "openai-responses", "anthropic"];

// counting is a fetch that counts the HTTP requests that a client makes.
export function counting() {
  const sent = { requests: 0 };
  return { sent, fetch: (...args) => (sent.requests++, fetch(...args)) };
}

// failure is what a promise is rejected with.
export const failure = (promise) => promise.then(
  (answer) => assert.fail(`answered: ${JSON.stringify(answer)}`),
  (error) => error,
);

export const words = (text) => text.trim().split(/\s+/).length;

// uuid is what a request's id looks like.
export const uuid = /^[0-9a-f-]{36}$/;

// city is the schema of the tools' arguments, weather that of structured output.
export const city = { type: "object", properties: { city: { type: "string" } }, required: ["city"] };
export const weather = {
  type: "object", properties: { city: { type: "string" }, degrees: { type: "integer" } },
  required: ["city", "degrees"], additionalProperties: false,
};

export function checkWeather(value) {
  assert.equal(typeof value.city, "string");
  assert.ok(Number.isInteger(value.degrees));
}

// checkCalls looks at calls as [id, name, arguments]: as many as there should be, each
// with an id of its own and whole arguments.
export function checkCalls(calls, names) {
  assert.deepEqual(calls.map(([, name]) => name), names);
  assert.equal(new Set(calls.map(([id]) => id)).size, names.length);
  for (const [id, , input] of calls) {
    assert.ok(id);
    assert.equal(typeof input.city, "string");
  }
}

// checkRetry looks at the headers that say when to come back.
export function checkRetry(header) {
  const seconds = Number(header("retry-after")), ms = Number(header("retry-after-ms"));
  assert.ok(ms > 0 && seconds === Math.ceil(ms / 1000) && seconds <= 60, `${seconds} s, ${ms} ms`);
}

// pixel is a PNG of one, in base64.
export const pixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
