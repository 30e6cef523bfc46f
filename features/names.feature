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
      | fast, small                             | resolves to the same model as the position before it |

  @N8
  Scenario: A class's chain is held to the same rules
    When the class "vision" is written as "small, middle, large, twin, deep, small"
    Then it is refused with "is longer than max_fallback_depth = 5"
    When the class "vision" is written as "small, fast"
    Then it is refused with "resolves to the same model as the position before it"

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

  @N13
  Scenario: A confined key sees what it may ask for, and nothing else
    Given a key confined to the class "summarize"
    Then the key of "acme" sees "class/summarize"
    When "acme" asks for "class/summarize"
    Then the plan serves "small"
    Given a key confined to the class "vision"
    Then the key of "acme" sees "none"
    Given a key confined to the models "handy, middle, premium, nobody, hears"
    Then the key of "acme" sees "handy, middle, premium"
    Given a key that is not confined
    Then the key of "acme" sees "deep, large, middle, small, twin"

  @N15
  Scenario Outline: A pool of several deployments is one exact model, by an operator's word
    When the model "pool" is written with "<exact>" over "<chain>" certified "<certified>"
    Then it is refused with "<reason>"

    Examples:
      | exact | chain                  | certified | reason                                          |
      | pool  | middle@west, twin@west | no        | needs an operator's certification               |
      | pool  | middle@west            | no        | so it cannot serve                              |
      | pool  | free@west              | no        | nothing                                         |
      | pool  | free@west, free@east   | no        | a pool of 2 deployments needs an operator's     |
      | pool  | free@west, free@east   | by nobody | equivalence.certified_by: is missing            |
      | pool  | free@west, free@east   | undated   | is not a date like 2026-11-01                   |
      | pool  | free@west, free@east   | unproved  | equivalence.evidence: is missing                |
      | pool  | free@west, free@east   | yes       | nothing                                         |

  @N16
  Scenario Outline: A chain has one reference at most, behind a rung of its own, and each rung one target
    When the model "pool" is written with "pool" over "<chain>" certified "yes"
    Then it is refused with "<reason>"

    Examples:
      | chain                            | reason                                        |
      | free@west, ->small               | nothing                                       |
      | ->small, free@west               | may come only after a deployment              |
      | ->small                          | may come only after a deployment              |
      | free@west, ->small, ->large      | at most one reference                         |
      | free@west, ->pool                | cannot refer to its own model                 |
      | free@west, ->nobody              | chain[1].model: model                         |
      | free@west & ->small              | names 2 targets                               |
      | free@west, nothing               | names no target                               |
      | free@west, free@west             | stands in this chain twice                    |
      | own!, free@west                  | only an organization's own chain may name     |
      | nobody                           | chain[0].deployment: deployment               |

  @N17
  Scenario: Models that refer to each other are walked once each
    Given the model "A" over "a1, ->B, a2"
    And the model "B" over "b1, ->A, b2"
    When "acme" asks for "A"
    Then the rungs are "a1, b1, A model_already_visited, b2, a2"
    When "acme" asks for "B"
    Then the rungs are "b1, a1, B model_already_visited, a2, b2"

  @N17
  Scenario: Another name of a model that was visited does not open it again
    Given the model "A" over "a1, ->B, a2"
    And the model "B" over "b1, ->A, b2"
    And the alias "also-a" is pinned to "A"
    And the rule for "both" is "B, also-a, small"
    When "acme" asks for "both"
    Then the rungs are "b1, a1, B model_already_visited, a2, b2, A model_already_visited, small@east"
    When "acme" asks for "also-a"
    Then the rungs are "a1, b1, A model_already_visited, b2, a2"

  @N18
  Scenario Outline: Sixteen models or 256 rungs and not one more, as an error and never as a shorter plan
    Given <models> models in a row of <width> deployments each
    When "acme" asks for "<name>"
    Then <outcome>

    Examples:
      | models | width | name  | outcome                                   |
      | 16     | 1     | row00 | 31 rungs were examined                    |
      | 17     | 1     | row00 | it is refused with "more than 16 models"  |
      | 16     | 15    | row00 | 255 rungs were examined                   |
      | 16     | 16    | row00 | it is refused with "more than 256 rungs"  |
      | 1      | 256   | row00 | 256 rungs were examined                   |
      | 1      | 257   | row00 | it is refused with "more than 256 rungs"  |

  @N18
  Scenario Outline: A chain of names past the bounds is refused too, when it is written and when it is used
    Given <models> models in a row of <width> deployments each
    When <chain> is written as "<names>"
    Then it is refused with "<reason>"

    Examples:
      | chain              | models | width | names                | reason                |
      | the tenant's rule  | 16     | 1     | row00                | nothing               |
      | the tenant's rule  | 16     | 1     | row00, small         | more than 16 models   |
      | the tenant's rule  | 1      | 256   | row00, nobody        | more than 256 rungs   |
      | the tenant's rule  | 1      | 255   | row00, nobody        | nothing               |
      | the class "vision" | 16     | 1     | row00, small         | more than 16 models   |
      | the class "vision" | 1      | 200   | row00, large         | nothing               |

  @N18
  Scenario: An organization's own chain is measured wherever it takes part
    Given 2 models in a row of 127 deployments each
    When "acme" has its own chain for "row01" over "row01@0"
    Then it is refused with "nothing"
    When "acme" has its own chain for "row01" over "row01@0 to row01@126, ->small"
    Then it is refused with "more than 256 rungs"

  @N20
  Scenario: Every stage has its own model's policy, also one with a single rung
    Given the model "A" over "a1, ->B, a2"
    And the model "B" over "b1"
    And the policy of "B" allows 3 attempts
    When "acme" asks for "A"
    Then the attempts that each rung's policy allows are "8, 3, 8"

  @N22
  Scenario: What the operator keeps to its model an organization cannot lead away from it
    Given the model "A" over "a1, ->B, a2"
    And the model "B" over "b1"
    And the model "A2" is another pool of "A" over "a3"
    And the policy of "A" keeps to its model
    And the rule for "mine" is "A, small, A2"
    When "acme" asks for "mine"
    Then the rungs are "a1, b1, a2, small not_same_model, a3"
    When "acme" has its own chain for "A" over "a2, ->B"
    And "acme" asks for "A"
    Then the rungs are "a2, B not_same_model"
    When "acme" asks for "class/summarize"
    Then the rungs are "small@east"
