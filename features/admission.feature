Feature: What a request must pass before anybody is called

  Every scenario sends HTTP to a worker and looks at the answer, at what the provider
  was sent, and at what is on record.

  Background:
    Given a worker is configured with
      """
      version: 1
      providers:
        - {id: east, protocol: openai, base_url: "PROVIDER", keys: [{id: k1, env: EAST}]}
        - {id: west, protocol: openai, base_url: "PROVIDER", keys: [{id: k1, env: WEST}]}
        - {id: north, protocol: anthropic, base_url: "PROVIDER", keys: [{id: k1, env: NORTH}]}
      deployments:
        - {id: tight@north, provider: north, upstream_model: tight, context: {total: 4003, max_output: 4000}, prices: {input: "1", output: "2"}}
        - {id: plain@east, provider: east, upstream_model: plain, capabilities: [chat], context: {total: 8000, max_output: 1000}, prices: {input: "1", output: "2"}}
        - {id: tools@west, provider: west, upstream_model: tools, capabilities: [chat, tools, structured_output, images, reasoning], context: {total: 100000, max_output: 4000}, prices: {input: "1", output: "2"}}
        - {id: open@west, provider: west, upstream_model: open, prices: {input: "1", output: "2"}}
        - {id: small@east, provider: east, upstream_model: small, context: {total: 500}, prices: {input: "1", output: "2"}}
        - {id: waits@east, provider: east, upstream_model: waits, prices: {input: "1", output: "2"}}
        - {id: down@east, provider: east, upstream_model: down, prices: {input: "1", output: "2"}}
        - {id: spare@west, provider: west, upstream_model: spare, prices: {input: "1", output: "2"}}
        - {id: free@west, provider: west, upstream_model: free}
        - {id: older@west, provider: west, upstream_model: older, prices: {input: "1", output: "2"}}
      models:
        - {slug: plain, exact_model: plain, chain: [{deployment: plain@east}]}
        - {slug: tools, exact_model: tools, chain: [{deployment: tools@west}]}
        - {slug: both, exact_model: plain, chain: [{deployment: plain@east}, {model: tools}]}
        - {slug: open, exact_model: open, chain: [{deployment: open@west}]}
        - {slug: small, exact_model: small, chain: [{deployment: small@east}]}
        - {slug: grows, exact_model: small, chain: [{deployment: small@east}, {model: tools}]}
        - {slug: slow, exact_model: waits, policy: {failover_mode: maximize_availability}, chain: [{deployment: waits@east}, {model: spare}]}
        - {slug: frail, exact_model: down, policy: {failover_mode: maximize_availability}, chain: [{deployment: down@east}, {model: spare}]}
        - {slug: spare, exact_model: spare, chain: [{deployment: spare@west}]}
        - {slug: unpriced, exact_model: free, chain: [{deployment: free@west}]}
        - {slug: tight, exact_model: tight, chain: [{deployment: tight@north}]}
        - {slug: older, exact_model: older, chain: [{deployment: older@west}]}
      classes:
        - {name: summarize, chain: [plain]}
      tenants:
        - {id: acme}
        - {id: beta}
        - {id: poor, budgets: [{scope: organization, limit_usd: "0.000001", per: day}]}
        - {id: literal, reply_model: canonical}
      """

  @A1
  Scenario Outline: A key is read from each of four headers
    Given a key of "acme"
    When the key is sent as "<header>"
    Then the answer has status 200

    Examples:
      | header         |
      | Authorization  |
      | x-api-key      |
      | api-key        |
      | x-goog-api-key |

  @A1
  Scenario: Of a key only its hash is kept
    Given a key of "acme"
    When "acme" sends {"model":"plain","messages":[{"role":"user","content":"hello"}]}
    Then the answer has status 200
    And neither log holds the key of "acme"

  @A2
  Scenario: A key that is not known is refused, and being unable to know is our own fault
    Given a key of "acme"
    When "stranger" sends {"model":"plain","messages":[{"role":"user","content":"hello"}]}
    Then the caller is answered "invalid_api_key" with status 401
    And the provider was not called
    When the key of "acme" is revoked
    And "acme" sends {"model":"plain","messages":[{"role":"user","content":"hello"}]}
    Then the caller is answered "invalid_api_key" with status 401
    And nothing is on record

  @A2
  Scenario: Before the configuration was read nobody is told that a key is wrong
    Given the worker has not read its configuration
    When "stranger" sends {"model":"plain","messages":[{"role":"user","content":"hello"}]}
    Then the caller is answered "gateway_unavailable" with status 503
    And the reply has the header "Retry-After"

  @A3 @A9 @Q1
  Scenario Outline: What must be refused is refused before any attempt, and on record with who refused it (<code>, <scope>)
    Given a key of "<who>" with <key>
    When "<who>" sends <body>
    Then the caller is answered "<code>" with status <status>
    And the provider was not called
    And the record has the refusal "<code>" of the scope "<scope>"

    Examples:
      | who  | key                     | body                                                                                                  | code                    | status | scope        |
      | acme | {}                      | {"model":"plain","messages":"hello"}                                                                  | invalid_request         | 400    | none         |
      | acme | {}                      | {"model":"plain","messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"http://10.0.0.1/a.png"}}]}]} | invalid_request | 400 | none |
      | acme | {}                      | {"model":"nobody","messages":[{"role":"user","content":"hello"}]}                                     | model_not_found         | 404    | organization |
      | acme | {}                      | {"model":"transcribe","messages":[{"role":"user","content":"hello"}]}                                 | alias_unresolvable      | 404    | organization |
      | acme | {}                      | {"model":"class/vision","messages":[{"role":"user","content":"hello"}]}                               | class_not_configured    | 404    | model        |
      | acme | {"models":["tools"]}    | {"model":"plain","messages":[{"role":"user","content":"hello"}]}                                      | model_not_found         | 404    | key          |
      | acme | {"class":"summarize"}   | {"model":"class/assistant","messages":[{"role":"user","content":"hello"}]}                            | model_not_found         | 404    | key          |
      | acme | {}                      | {"model":"plain","messages":[{"role":"user","content":"hello"}],"tools":[{"type":"function","function":{"name":"f"}}]} | capability_unavailable | 400 | model |
      | acme | {}                      | {"model":"small","messages":[{"role":"user","content":"hello"}],"max_tokens":600}                     | context_length_exceeded | 400    | model        |
      | acme | {}                      | {"model":"unpriced","messages":[{"role":"user","content":"hello"}]}                                   | price_unknown           | 503    | model        |
      | poor | {}                      | {"model":"plain","messages":[{"role":"user","content":"hello"}]}                                      | insufficient_quota      | 429    | organization |

  @A4
  Scenario: A capability that one rung lacks skips it by name, and that all lack refuses by name
    Given a key of "acme"
    When "acme" sends {"model":"both","messages":[{"role":"user","content":"hello"}],"tools":[{"type":"function","function":{"name":"f"}}]}
    Then the answer has status 200
    And the provider was called for "tools"
    And the record skips with "capability_missing" for "tools" of "east"
    When "acme" sends {"model":"plain","messages":[{"role":"user","content":"hello"}],"tools":[{"type":"function","function":{"name":"f"}}]}
    Then the caller is answered "capability_unavailable" with status 400
    And the answer says "'tools'"
    And the provider was called for "tools"

  @A5
  Scenario: Each destination's windows are checked, and the caller's own maximum is never lowered
    Given a key of "acme"
    When "acme" sends {"model":"grows","messages":[{"role":"user","content":"hello"}],"max_tokens":600}
    Then the answer has status 200
    And the provider was called for "tools"
    And the provider was sent "max_tokens=600"
    And the record skips with "context_too_small" for "total" of "east"
    When "acme" sends {"model":"tools","messages":[{"role":"user","content":"hello"}],"max_tokens":5000}
    Then the caller is answered "context_length_exceeded" with status 400
    And the record has the refusal "context_length_exceeded" of the scope "model"
    And the record's refusal has the limit 4000 and saw 5000 "tokens"
    When "acme" sends {"model":"small","messages":[{"role":"user","content":"hello"}],"max_tokens":600}
    Then the caller is answered "context_length_exceeded" with status 400
    And the answer's "error.limit" is "500"
    And the answer's "error.used" is "601"
    And the answer's "error.scope" is "model"

  @A5
  Scenario: A window that nobody declared excludes nothing
    Given a key of "acme"
    When "acme" sends {"model":"open","messages":[{"role":"user","content":"hello"}],"max_tokens":900000}
    Then the answer has status 200
    And the provider was sent "max_tokens=900000"

  @A5
  Scenario: Where a dialect has to name an output, what is named fits what is left of the window
    Given a key of "acme"
    When "acme" sends {"model":"tight","messages":[{"role":"user","content":"hello"}]}
    Then the answer has status 200
    And the provider was sent "max_tokens=3997"
    When "acme" sends {"model":"tight","messages":[{"role":"user","content":"hello"}],"max_tokens":4000}
    Then the answer has status 200
    And the provider was sent "max_tokens=4000"
    When "acme" sends {"model":"tight","messages":[{"role":"user","content":"hello there everybody"}],"max_tokens":4001}
    Then the caller is answered "context_length_exceeded" with status 400

  @A6
  Scenario Outline: The estimate is the rule's
    Given a key of "acme"
    When "acme" sends <body>
    Then the record estimates <in> tokens in and <out> out

    Examples: hello is one token, a message four, an image 2,048, tools 400 and 12 each, and 15 percent on top
      | body                                                                                    | in   | out   |
      | {"model":"plain","messages":[{"role":"user","content":"hello"}]}                        | 6    | 1000  |
      | {"model":"plain","messages":[{"role":"user","content":"hello"}],"max_tokens":50}        | 6    | 50    |
      | {"model":"open","messages":[{"role":"user","content":"hello"}]}                         | 6    | 32768 |
      | {"model":"open","messages":[{"role":"user","content":"hello"},{"role":"user","content":"hello"}]} | 12 | 32768 |
      | {"model":"open","messages":[{"role":"user","content":[{"type":"text","text":"hello"},{"type":"image_url","image_url":{"url":"https://pictures.test/a.png"}}]}],"max_tokens":9} | 2361 | 9 |

  @A7
  Scenario: Admission is shared by all keys of an organization, and one that waits too long may come back
    Given the worker admits 1 request of an organization at once and lets others wait 5ms
    And a key of "acme"
    And another key "second" of "acme"
    And a key of "beta"
    When "acme" sends {"model":"plain","messages":[{"role":"user","content":"hello"}]} and waits for the log
    And "second" sends {"model":"plain","messages":[{"role":"user","content":"hello"}]}
    Then the caller is answered "admission_timeout" with status 429
    And the answer's "error.retryable" is "true"
    And the reply has the header "Retry-After"
    And the record has the refusal "admission_timeout" of the scope "organization"
    And the record's refusal has the limit 1 and saw 1 "requests"
    And the record's refusal says when to come back
    When "beta" sends {"model":"plain","messages":[{"role":"user","content":"hello"}]}
    Then the answer has status 200
    When the log goes on
    Then the request that was under way is answered with 200

  @A7
  Scenario: The slot is free once the first reservation is durable
    Given the worker admits 1 request of an organization at once and lets others wait 5ms
    And a key of "acme"
    When "acme" sends {"model":"slow","messages":[{"role":"user","content":"hello"}]} and its call has begun
    And "acme" sends {"model":"plain","messages":[{"role":"user","content":"hello"}]}
    Then the answer has status 200
    When the call that has begun fails
    Then the request that was under way is answered with 200

  @A8
  Scenario: One deadline, one authorization and one id, whatever the number of attempts
    Given a key of "acme"
    And the header "x-sluice-deadline-ms" is "45000"
    When "acme" sends {"model":"slow","messages":[{"role":"user","content":"hello"}]} and its call has begun
    And the key of "acme" is revoked
    And the call that has begun fails
    Then the request that was under way is answered with 200
    And the reply's header "X-Sluice-Attempts" is "3"
    And the record has one admission with the deadline 45000 and 3 attempts

  @A9
  Scenario: A budget's refusal says its scope, its size, what it saw and when it ends
    Given a key of "poor"
    When "poor" sends {"model":"plain","messages":[{"role":"user","content":"hello"}]}
    Then the caller is answered "insufficient_quota" with status 429
    And the answer's "error.scope" is "organization"
    And the answer's "error.limit" is "1000"
    And the record has the refusal "insufficient_quota" of the scope "organization"
    And the record's refusal has the limit 1000 and saw 0 "nanousd"
    And the record's refusal says when to come back

  @N1 @Q1
  Scenario: A name that is nobody's is not found
    Given a key of "acme"
    When "acme" sends {"model":"nobody","messages":[{"role":"user","content":"hello"}]}
    Then the caller is answered "model_not_found" with status 404
    And the reply's header "X-Sluice-Attempts" is "0"
    And the provider was not called

  @N9 @N12
  Scenario: A class in a header takes the place of the model, and has a priority of its own
    Given a key of "acme"
    And the header "x-sluice-class" is "summarize"
    When "acme" sends {"model":"tools","messages":[{"role":"user","content":"hello"}]}
    Then the provider was called for "plain"
    And the record's priority is "background"
    Given the header "x-sluice-priority" is "realtime"
    When "acme" sends {"model":"tools","messages":[{"role":"user","content":"hello"}]}
    Then the record's priority is "realtime"

  @N11 @Q1
  Scenario: A class whose links are all turned down is never served by anything else
    Given the worker lacks the keys of "east"
    And a key of "acme"
    When "acme" sends {"model":"class/summarize","messages":[{"role":"user","content":"hello"}]}
    Then the caller is answered "no_route_allowed" with status 503
    And the provider was not called
    When "acme" sends {"model":"class/vision","messages":[{"role":"user","content":"hello"}]}
    Then the caller is answered "class_not_configured" with status 404

  @N13
  Scenario: A confined key finds in the list what it may ask for
    Given a key of "acme" with {"class":"summarize"}
    When "acme" gets "/v1/models"
    Then the list names "class/summarize"
    When "acme" gets "/v1/models/class%2Fsummarize"
    Then the answer has status 200
    When "acme" gets "/v1/models/plain"
    Then the caller is answered "model_not_found" with status 404
    When "acme" sends {"model":"tools","messages":[{"role":"user","content":"hello"}]}
    Then the provider was called for "plain"
    Given a key of "acme" with {"models":["older","fast","gone"]}
    When "acme" gets "/v1/models"
    Then the list names "fast, older"

  @N14 @C12
  Scenario: An edit in the middle of a request changes nothing for it
    Given a key of "acme"
    When "acme" sends {"model":"slow","messages":[{"role":"user","content":"hello"}]} and its call has begun
    And the operator puts [{"deployment":"waits@east"},{"model":"older"}] at "/models/slow/chain"
    And the operator deletes "/models/frail"
    And the operator deletes "/models/spare"
    And the operator puts {"input":"900","output":"900"} at "/deployments/spare@west/prices"
    And the call that has begun fails
    Then the request that was under way is answered with 200
    And the record has the moves "waits@east, waits@east, spare@west"
    And the record's snapshot is the one of before the edit
    And the reply's header "X-Sluice-Cost-Nanousd" is "11000"
    When "acme" sends {"model":"slow","messages":[{"role":"user","content":"hello"}]}
    Then the reply's header "X-Sluice-Canonical-Model" is "older"

  @N21
  Scenario Outline: What a request needs is never taken out to make it fit (<needs>)
    Given a key of "acme"
    When "acme" sends {"model":"both","messages":[{"role":"user","content":"hello"}],<with>}
    Then the answer has status 200
    And the provider was called for "tools"
    And the provider was sent "<sent>"
    And the record skips with "<reason>" for "<needs>" of "east"

    Examples:
      | needs             | with                                                                                          | sent                                | reason             |
      | tools             | "tools":[{"type":"function","function":{"name":"f"}}]                                         | tools.0.function.name=f             | capability_missing |
      | structured_output | "response_format":{"type":"json_schema","json_schema":{"name":"s","schema":{"type":"object"}}} | response_format.json_schema.name=s  | capability_missing |
      | reasoning         | "reasoning_effort":"high"                                                                     | reasoning_effort=high               | capability_missing |
      | max_output        | "max_tokens":2000                                                                             | max_tokens=2000                     | context_too_small  |

  @N21
  Scenario: An image goes where images are read, or nowhere
    Given a key of "acme"
    When "acme" sends {"model":"both","messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"https://pictures.test/a.png"}}]}]}
    Then the provider was called for "tools"
    And the provider was sent "messages.0.content.0.image_url.url=https://pictures.test/a.png"
    When "acme" sends {"model":"plain","messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"https://pictures.test/a.png"}}]}]}
    Then the caller is answered "capability_unavailable" with status 400

  @N22
  Scenario: A change of model is said on the reply, and a caller may forbid it
    Given a key of "acme"
    When "acme" sends {"model":"frail","messages":[{"role":"user","content":"hello"}]}
    Then the reply's header "X-Sluice-Canonical-Model" is "spare"
    And the reply's header "X-Sluice-Fallback-Kind" is "model_change"
    Given the header "x-sluice-fallback" is "same-model"
    When "acme" sends {"model":"frail","messages":[{"role":"user","content":"hello"}]}
    Then the caller is answered "upstream_exhausted" with status 502

  @N23
  Scenario: The model of a reply is the name that was asked for, unless the caller's organization or key wants to know
    Given a key of "acme"
    When "acme" sends {"model":"best","messages":[{"role":"user","content":"hello"}]}
    Then the answer's "model" is "best"
    And the reply's header "X-Sluice-Canonical-Model" is "both"
    When "acme" sends to "/v1/messages" {"model":"frail","max_tokens":9,"messages":[{"role":"user","content":"hello"}]}
    Then the answer's "model" is "frail"
    And the reply's header "X-Sluice-Canonical-Model" is "spare"
    Given a key of "literal"
    When "literal" sends {"model":"frail","messages":[{"role":"user","content":"hello"}]}
    Then the answer's "model" is "spare"
    Given a key of "literal" with {"reply_model":"requested"}
    When "literal" sends {"model":"frail","messages":[{"role":"user","content":"hello"}]}
    Then the answer's "model" is "frail"
    Given a key of "acme" with {"reply_model":"canonical"}
    When "acme" sends {"model":"best","messages":[{"role":"user","content":"hello"}]}
    Then the answer's "model" is "both"
