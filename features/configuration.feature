Feature: Editing the configuration while it is served from

  Two people edit at once, keys go away, and a mistake must not turn one thing into
  another. Every scenario goes through the admin API.

  Background:
    Given a gateway that serves
      """
      version: 1
      providers:
        - {id: east, protocol: openai, base_url: "https://east.example.test/v1", keys: [{id: k1, env: EAST}]}
        - {id: west, protocol: openai, base_url: "https://west.example.test/v1", keys: [{id: k1, env: WEST}]}
      deployments:
        - {id: a1, provider: east, upstream_model: a, prices: {input: "1", output: "2"}}
        - {id: a2, provider: west, upstream_model: a, prices: {input: "1", output: "2"}}
        - {id: a3, provider: west, upstream_model: a, prices: {input: "1", output: "2"}, masked: true}
        - {id: b1, provider: west, upstream_model: b, prices: {input: "1", output: "2"}}
      models:
        - slug: a
          exact_model: a
          equivalence: {certified_by: ops, on: "2026-11-01", evidence: "sha256:00"}
          chain: [{deployment: a1}, {model: b}, {deployment: a2}, {deployment: a3}]
        - {slug: b, exact_model: b, chain: [{deployment: b1}]}
      tenants:
        - {id: acme}
      """

  @C1
  Scenario: Every change is an event of its object, with its actor
    When ada loads "/models/b/policy"
    And ada patches it with {"max_attempts": 3}
    Then the last event of "model/b" is "policy_changed" by "bootstrap"
    And the snapshot has another id

  @C2
  Scenario: A chain is replaced in one event
    When ada loads "/models/a/chain"
    And ada saves [{"deployment":"a2"},{"deployment":"a1"}]
    Then it is saved
    And the last event of "chain/operator/a" is "chain_replaced" by "bootstrap"
    And requests of "acme" for "a" are served by "a2, a1"

  @C2
  Scenario: An invalid edit changes nothing
    When ada loads "/models/a/chain"
    And ada saves [{"deployment":"a2"},{"deployment":"none"}]
    Then it is refused as "invalid_request" at "chain[1].deployment"
    And nothing was written

  @C3
  Scenario: Of two editors the second one learns that there was a first
    When ada loads "/models/a/chain"
    And bob loads "/models/a/chain"
    And ada saves [{"deployment":"a2"}]
    And bob saves [{"deployment":"a1"}]
    Then the edit is refused as "revision_conflict"
    And the refusal names the revision 2
    And requests of "acme" for "a" are served by "a2"

  @C3
  Scenario: A write that names no revision is not taken for one that knows
    When bob saves [{"deployment":"a1"}] to "/models/a/chain" without loading it
    Then the edit is refused as "revision_required"
    And nothing was written

  @C4
  Scenario: An empty chain resets an organization's own, and its revision goes on
    When ada loads "/tenants/acme/chains/a"
    And bob loads "/tenants/acme/chains/a"
    And ada saves [{"deployment":"a2"}]
    Then requests of "acme" for "a" are served by "a2"
    When ada saves []
    Then requests of "acme" for "a" are served by "a1, b1, a2, a3"
    When bob saves [{"deployment":"a1"}]
    Then the edit is refused as "revision_conflict"
    And the refusal names the revision 2

  @C5
  Scenario Outline: Four states of a chain are told apart
    Given the worker holds the keys of "<held>"
    When ada saves <chain> to "<address>" without loading it
    And ada loads "<address>"
    Then its state is "<state>"

    Examples:
      | held       | address                 | chain                                 | state       |
      | east, west | /tenants/acme/chains/a  | []                                    | no_override |
      | east, west | /tenants/acme/chains/a  | [{"deployment":"a1"}]                 | available   |
      | west       | /tenants/acme/chains/a  | [{"deployment":"a1"}]                 | unavailable |
      | west       | /tenants/acme/chains/a  | [{"deployment":"a1"},{"model":"b"}]   | unavailable |
      | west       | /tenants/acme/chains/a  | [{"deployment":"a1"},{"deployment":"a2"}] | available |

  @C5
  Scenario: An operator's chain that holds nothing
    Given the log lost the chain of "b"
    When ada loads "/models/b/chain"
    Then its state is "empty"

  @C6
  Scenario Outline: A credential can always be deleted, and nothing else takes its place
    When ada saves <chain> to "/tenants/acme/chains/a" without loading it
    And ada loads "/providers/east"
    And ada patches it with {"keys": [{"id": "k2", "env": "GONE"}]}
    Then it is saved
    When ada loads "<address>"
    Then its state is "<state>"
    And requests of "acme" for "a" are planned as "<planned>"

    Examples:
      | chain                               | address                | state       | planned        |
      | []                                  | /tenants/acme/chains/a | no_override | a1, b1, a2, a3 |
      | []                                  | /models/a/chain        | unavailable | a1, b1, a2, a3 |
      | [{"deployment":"a2"}]               | /tenants/acme/chains/a | available   | a2             |
      | [{"deployment":"a1"},{"model":"b"}] | /tenants/acme/chains/a | unavailable | a1, b1         |

  @C7
  Scenario: The last direct rung cannot be switched off
    When ada loads "/models/a/chain"
    And ada saves [{"model":"b"}]
    Then it is refused as "invalid_request" at "chain[0].model"
    When ada saves []
    Then it is refused as "invalid_request" at "chain"
    And nothing was written

  @C7
  Scenario: A hidden rung keeps its group when what is visible is saved
    When ada loads "/models/a/chain?view=caller"
    Then its chain is [{"deployment":"a1"},{"model":"b"},{"deployment":"a2"}]
    When ada saves [{"deployment":"a2"},{"deployment":"a1"},{"model":"b"}]
    Then it is saved
    And requests of "acme" for "a" are planned as "a2, a1, b1, a3"

  @C8
  Scenario: A name means the object of its address and no other
    When ada saves {"pin": "b"} to "/tenants/acme/aliases/a" without loading it
    Then it is saved
    And requests of "acme" for "a" are planned as "a1, b1, a2, a3"
    When ada loads "/tenants/acme/aliases/a"
    And ada deletes it
    And ada loads "/models/a"
    Then it is there

  @C9
  Scenario: In an update an omitted field is unchanged and null clears it
    When ada loads "/models/b/policy"
    And ada patches it with {"max_attempts": 3, "failover_mode": "maximize_availability"}
    And ada patches it with {"max_attempts": null}
    Then its "failover_mode" is "maximize_availability"
    And it has no "max_attempts"
    When ada patches it with {"max_attemps": null}
    Then the edit is refused as "invalid_request"

  @C10
  Scenario Outline: A mode without a threshold removes the automatic one
    When ada loads "/models/b/policy"
    And ada patches it with <policy>
    Then its "effective.failover_mode" is "<mode>"
    And its "effective.throttle_cache_threshold" is "<threshold>"

    Examples:
      | policy                                                             | mode                  | threshold |
      | {}                                                                 | maximize_cache        | 0.5       |
      | {"failover_mode":"maximize_cache"}                                 | maximize_cache        |           |
      | {"failover_mode":"maximize_availability"}                          | maximize_availability |           |
      | {"throttle_cache_threshold":0.2}                                   | maximize_cache        | 0.2       |
      | {"failover_mode":"maximize_cache","throttle_cache_threshold":0.2}  | maximize_cache        | 0.2       |

  @C2 @L4
  Scenario: An organization is in a tier that there is
    When ada saves {"tier": "gold"} to "/tenants/beta" without loading it
    Then it is refused as "invalid_request" at "tier"
    And nothing was written
    When ada saves {"weight": 3} to "/tiers/gold" without loading it
    Then it is saved
    And the last event of "tier/gold" is "tier_defined" by "bootstrap"
    When ada saves {"tier": "gold"} to "/tenants/beta" without loading it
    Then it is saved
    And the weight of "beta" is 3
    And the weight of "acme" is 1
    When ada loads "/tiers/gold"
    And ada deletes it
    Then it is refused as "invalid_request" at "tier"

  @C11
  Scenario: While the log cannot be read the last good snapshot is served, and says that it is stale
    Given the log cannot be read
    When ada loads "/snapshot"
    Then its "stale" is "true"
    And requests of "acme" for "a" are served by "a1, b1, a2, a3"
    When ada loads "/models/a/chain"
    Then the edit is refused as "gateway_unavailable"
    Given the log can be read again
    When ada loads "/models/a/chain"
    And ada saves [{"deployment":"a2"}]
    And ada loads "/snapshot"
    Then its "stale" is "false"
    And requests of "acme" for "a" are served by "a2"

  @C11
  Scenario: A change at one worker is told to another, which need not look
    Given two workers on one database, of which the second never looks by itself
    When the first is given the organization "gamma" and a key of it
    Then the second comes to know the key
    When the first revokes the key
    Then the second comes to refuse the key

  @C12 @N14
  Scenario: A request that was admitted keeps its plan through an edit
    Given a request of "acme" for "a" was admitted
    When ada loads "/models/a/chain"
    And ada saves [{"deployment":"a2"}]
    Then the admitted request is still served by "a1, b1, a2, a3"
    And requests of "acme" for "a" are served by "a2"

  @C13
  Scenario: What was edited can be exported and applied to an empty gateway
    When ada saves [{"deployment":"a2"}] to "/tenants/acme/chains/a" without loading it
    And ada saves {"chain":["a","b"]} to "/tenants/acme/routing-rules/best" without loading it
    Then its export, applied to an empty log, gives the same snapshot

  @C14
  Scenario: A secret cannot be written into an object, and is not repeated
    When ada saves {"protocol":"openai","base_url":"https://n.example.test/v1","keys":[{"id":"k1","secret":"sk-very-secret"}]} to "/providers/north" without loading it
    Then it is refused as "invalid_request" at "keys[0]"
    And the refusal does not hold "sk-very-secret"
    And nothing was written

  @C15
  Scenario: An event of a newer release is passed over, visibly, and nothing is lost
    Given the log holds an event that this release does not know
    When ada loads "/snapshot"
    Then it lists "from_the_future" as passed over
    When ada loads "/models/b/policy"
    And ada patches it with {"max_attempts": 3}
    Then it is saved

  @C16
  Scenario: A stored snapshot keeps the id that it was published with
    Given the snapshot is stored
    When ada loads "/models/a/chain"
    And ada saves [{"deployment":"a2"}]
    Then the stored snapshot is still read under its own id

  @C16
  Scenario: A snapshot of an older format is read by the format that it names
    Given a snapshot that an older release published
    Then it is read under its own id, though this release would give it another
    And the same bytes under another id are refused
