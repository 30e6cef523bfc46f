Feature: From what a caller asks for to a plan

  Background:
    Given the configuration
      """
      version: 1
      providers:
        - {id: east, protocol: openai, base_url: "https://east.example.test/v1", keys: [{id: k1, env: EAST}]}
        - {id: west, protocol: openai, base_url: "https://west.example.test/v1", keys: [{id: k1, env: WEST}]}
        - {id: north, protocol: openai, base_url: "https://north.example.test/v1", keys: [{id: k1, env: NORTH}]}
      deployments:
        - {id: small@east, provider: east, upstream_model: small, capabilities: [chat], context: {total: 32000}, prices: {input: "0.10", output: "0.40"}}
        - {id: middle@west, provider: west, upstream_model: middle, capabilities: [chat, tools], context: {total: 200000}, prices: {input: "1.00", output: "4.00"}}
        - {id: large@north, provider: north, upstream_model: large, capabilities: [chat, tools, images], context: {total: 1000000}, prices: {input: "5.00", output: "25.00"}}
        - {id: twin@west, provider: west, upstream_model: twin, capabilities: [chat, tools], context: {total: 200000}, prices: {input: "1.00", output: "4.00"}}
        - {id: deep@east, provider: east, upstream_model: deep, capabilities: [chat, tools], prices: {input: "0.20", output: "0.40"}}
      models:
        - {slug: small, exact_model: small, chain: [{deployment: small@east}]}
        - {slug: middle, exact_model: middle, chain: [{deployment: middle@west}]}
        - {slug: large, exact_model: large, chain: [{deployment: large@north}]}
        - {slug: twin, exact_model: twin, chain: [{deployment: twin@west}]}
        - {slug: deep, exact_model: deep, chain: [{deployment: deep@east}]}
      classes:
        - {name: assistant, chain: [large, middle]}
        - {name: summarize, chain: [small]}
      tenants:
        - id: acme
          aliases:
            - {name: handy, capabilities: [tools], cost_tier: cheapest}
            - {name: pinned, pin: large, capabilities: [chat], cost_tier: cheapest}
            - {name: unpinned, pin: gone, capabilities: [tools], cost_tier: best}
            - {name: long, capabilities: [chat], min_context_window: 500000}
            - {name: roomy, capabilities: [chat], min_context_window: 100000, cost_tier: cheapest}
            - {name: northern, capabilities: [tools], provider_preference: [north], cost_tier: cheapest}
            - {name: hears, capabilities: [transcription]}
          routing_rules:
            - {match: premium, chain: [large, nobody, handy]}
            - {match: middle, chain: [middle, small]}
      """

  @N1
  Scenario: A model, else an alias, else a class, else nothing
    When "acme" asks for "small"
    Then the plan serves "small"
    When "acme" asks for "fast"
    Then the plan serves "small"
    When "acme" asks for "summarize"
    Then the plan serves "small"
    When "acme" asks for "nothing-of-the-kind"
    Then it is refused as "model_not_found"
    When "nobody" asks for "small"
    Then it is refused as "model_not_found"

  @N2
  Scenario: Every tenant has four aliases, and one that nothing fits says so
    When "acme" asks for "fast"
    Then the plan serves "small"
    When "acme" asks for "balanced"
    Then the plan serves "small"
    When "acme" asks for "best"
    Then the plan serves "large"
    When "acme" asks for "transcribe"
    Then it is refused as "alias_unresolvable"
    When "acme" asks for "hears"
    Then it is refused as "alias_unresolvable"

  @N2
  Scenario: When an alias stops fitting anything, an event says when that began
    When the model "large" is removed
    Then the aliases that degrade are "acme long"

  @N3
  Scenario: A pin that resolves wins outright, one that is gone falls through
    When "acme" asks for "pinned"
    Then the plan serves "large"
    When "acme" asks for "unpinned"
    Then the plan serves "large"

  @N4
  Scenario: What fits is ordered by price, and ties are broken by id
    When "acme" asks for "handy"
    Then the plan serves "deep"
    When "acme" asks for "roomy"
    Then the plan serves "middle"
    When "acme" asks for "long"
    Then the plan serves "large"

  @N5
  Scenario: A preference orders and excludes nobody
    When "acme" asks for "northern"
    Then the plan serves "large"

  @N6 @N7
  Scenario: A rule's chain gives each position at most one model, and what resolves to nothing is a skip
    When "acme" asks for "premium"
    Then the plan serves "large, nobody unresolved, deep"
    And the canonical model is "large"

  @N7
  Scenario: A rule's own name inside its chain does not recurse
    When "acme" asks for "middle"
    Then the plan serves "middle, small"

  @N8
  Scenario Outline: A chain that could only fail is refused when it is written
    When the tenant's rule is written as "<chain>"
    Then it is refused with "<reason>"

    Examples:
      | chain                                   | reason                                               |
      | small, middle, large, twin, deep, small | is longer than max_fallback_depth = 5                |
      | small, fast                             | resolves to the same model as the position before it |
      | large, large                            | repeats the position before it                       |

  @N9
  Scenario: A request may name a class instead of a model
    When "acme" asks for "class/assistant"
    Then the plan serves "large, middle"
    When "acme" asks for "small" in the class "summarize"
    Then the plan serves "small"

  @N10
  Scenario: Some classes borrow, vision never does, and others say where a chain is given
    When "acme" asks for "class/background"
    Then the plan serves "large, middle"
    When "acme" asks for "class/session-name"
    Then the plan serves "large, middle"
    When "acme" asks for "class/vision"
    Then it is refused as "class_not_configured"
    When "acme" asks for "class/compaction"
    Then it is refused as "class_not_configured"
    And the refusal says "give it one under classes in sluice.yaml"

  @N12
  Scenario Outline: A class has a default priority
    Then the default priority of "<class>" is "<priority>"

    Examples:
      | class      | priority   |
      | assistant  | realtime   |
      | summarize  | background |
      | compaction | background |
      | vision     | realtime   |

  @N13
  Scenario: A confined key cannot be widened by anything in the request
    Given a key confined to the class "summarize"
    When "acme" asks for "large"
    Then the plan serves "small"
    When "acme" asks for "class/assistant"
    Then it is refused as "model_not_found"
    When "acme" asks for "small" in the class "assistant"
    Then it is refused as "model_not_found"
    Given a key confined to the models "middle, handy"
    When "acme" asks for "handy"
    Then the plan serves "deep"
    When "acme" asks for "large"
    Then it is refused as "model_not_found"
    When "acme" asks for "handy" in the class "assistant"
    Then it is refused as "model_not_found"
