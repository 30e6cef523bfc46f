Feature: The exact moves of a request

  Each scenario gives a chain, says how calls end, and checks the whole list of
  calls and skips with the reason of each, in order. A call is written as its kind,
  its route and its key.

  @W2 @W9 @W23
  Scenario: A route that breaks is tried once more, then the next one
    Given the chain
      | route |
      | a     |
      | b     |
    When the calls end
      | route | endings      |
      | a     | server_error |
      | b     | ok           |
    Then the moves are
      """
      first a k1
      retry a k1
      failover b k1
      completed
      """
    And the fallback depth is 1

  @W3 @Q1
  Scenario: A malformed request costs exactly one call
    Given the chain
      | route |
      | a     |
      | b     |
    When the calls end
      | route | endings         |
      | a     | invalid_request |
    Then the moves are
      """
      first a k1
      failed invalid_request
      """

  @W9
  Scenario: The attempts run out before the routes
    Given the chain
      | route |
      | a     |
      | b     |
      | c     |
    And the request may make 3 attempts
    When the calls end
      | route | endings      |
      | a     | server_error |
      | b     | server_error |
      | c     | ok           |
    Then the moves are
      """
      first a k1
      retry a k1
      failover b k1
      failed upstream_exhausted attempts_exhausted
      """

  @W10
  Scenario: Moving on does not reset the clock
    Given the chain
      | route |
      | a     |
      | b     |
    And the request must end within 30s
    When the calls end
      | route | endings                |
      | a     | timeout_first_byte@20s |
      | b     | timeout_first_byte@9.9s |
    Then the moves are
      """
      first a k1
      failover b k1
      failed upstream_exhausted
      """
    When the calls end
      | route | endings                  |
      | a     | timeout_first_byte@29.8s |
      | b     | ok                       |
    Then the moves are
      """
      first a k1
      failed deadline_exceeded time_exhausted
      """

  @W15 @A4 @Q1
  Scenario: A missing capability skips one route, and refuses when it is missing on all
    Given the chain
      | route | capabilities |
      | a     | chat         |
      | b     | chat, tools  |
    And the request needs "tools"
    When the calls end
      | route | endings |
      | b     | ok      |
    Then the moves are
      """
      skip a capability_missing
      first b k1
      completed
      """
    And the fallback depth is 0
    Given the request needs "images"
    When the calls end
      | route | endings |
      | a     | ok      |
    Then the moves are
      """
      refused capability_unavailable
      """
    And nobody was called

  @A5 @Q1
  Scenario: A window that is too small skips one route, and refuses when all are
    Given the chain
      | route | window |
      | a     | 500    |
      | b     | 100000 |
    When the calls end
      | route | endings |
      | b     | ok      |
    Then the moves are
      """
      skip a context_too_small
      first b k1
      completed
      """
    Given the chain
      | route | window |
      | a     | 500    |
    When the calls end
      | route | endings |
      | a     | ok      |
    Then the moves are
      """
      refused context_length_exceeded
      """
    And nobody was called

  @M3 @Q1
  Scenario: An unpriced route is skipped like a dead one
    Given the chain
      | route | price |
      | a     |       |
      | b     | 3     |
    When the calls end
      | route | endings |
      | b     | ok      |
    Then the moves are
      """
      skip a price_unknown
      first b k1
      completed
      """
    Given the chain
      | route | price |
      | a     |       |
    When the calls end
      | route | endings |
      | a     | ok      |
    Then the moves are
      """
      refused price_unknown
      """
    And nobody was called

  @N17 @N22 @W15
  Scenario: Another model is a change of model, and what a chain names in vain is a skip
    Given the chain
      | route | model | skip                  |
      | a     | fable |                       |
      | x     | fable | unresolved            |
      | y     | fable | model_already_visited |
      | b     | older |                       |
    When the calls end
      | route | endings            |
      | a     | deployment_missing |
      | b     | ok                 |
    Then the moves are
      """
      first a k1
      skip x unresolved
      skip y model_already_visited
      model_change b k1
      completed
      """
    And the fallback kind is "model_change"

  @N22
  Scenario: A caller may forbid another model
    Given the chain
      | route | model | skip |
      | a     | fable |      |
      | b     | older |      |
    And the caller allows only the same model
    When the calls end
      | route | endings            |
      | a     | deployment_missing |
    Then the moves are
      """
      first a k1
      skip b not_same_model
      failed upstream_exhausted
      """

  @W15
  Scenario: A provider whose credential this worker lacks is skipped
    Given the chain
      | route | keys    |
      | a     | missing |
      | b     | k1      |
    When the calls end
      | route | endings |
      | b     | ok      |
    Then the moves are
      """
      skip a credential_missing
      first b k1
      completed
      """

  @W17
  Scenario: A throttle rotates the key before the candidate fails
    Given the chain
      | route | keys       |
      | a     | k1, k2, k3 |
      | b     | k1         |
    When the calls end
      | route | endings   |
      | a     | throttled |
      | b     | ok        |
    Then the moves are
      """
      first a k1
      key_rotation a k2
      key_rotation a k3
      failover b k1
      completed
      """
    And the fallback depth is 1

  @W17
  Scenario: The pool is begun one key further each request, unless it is a failover pool
    Given the chain
      | route | keys   | strategy    |
      | a     | k1, k2 | round_robin |
    When the calls end
      | route | endings |
      | a     | ok      |
    And the calls end
      | route | endings |
      | a     | ok      |
    Then the keys that served were "k1, k2"
    Given the chain
      | route | keys   | strategy |
      | a     | k1, k2 | failover |
    When the calls end
      | route | endings |
      | a     | ok      |
    And the calls end
      | route | endings |
      | a     | ok      |
    Then the keys that served were "k1, k1"

  @W18
  Scenario: A key is parked exactly as long as it was told, and never dropped
    Given the chain
      | route | keys   | strategy |
      | a     | k1, k2 | failover |
    When the calls end
      | route | endings                    |
      | a     | throttled retry-after 7s, ok |
    And the calls end
      | route | endings |
      | a     | ok      |
    Then the moves are
      """
      skip a key_parked
      first a k2
      completed
      """
    When 7s go by
    And the calls end
      | route | endings |
      | a     | ok      |
    Then the moves are
      """
      first a k1
      completed
      """

  @W6 @M7 @M11
  Scenario Outline: A customer's own key that fails is the customer's own error (<class>)
    Given the chain
      | route | owner     |
      | own   | workspace |
      | b     |           |
    When the calls end
      | route | endings |
      | own   | <class> |
      | b     | ok      |
    Then the moves are
      """
      first own k1
      failed <code>
      """
    And the answer is "<code>" with status <status>
    When the calls end
      | route | endings |
      | b     | ok      |
    Then the moves are
      """
      skip own <skip>
      first b k1
      completed
      """

    Examples:
      | class          | code                         | status | skip            |
      | provider_auth  | customer_credential_rejected | 424    | credential_open |
      | provider_quota | customer_credential_quota    | 402    | breaker_open    |

  @N11 @A3 @Q1
  Scenario: Links that all exist and are all turned down are not served by anything else
    Given the chain
      | route | keys    |
      | a     | missing |
      | b     | missing |
    When the calls end
      | route | endings |
      | a     | ok      |
    Then the moves are
      """
      refused no_route_allowed
      """
    And nobody was called

  @Z1 @W15
  Scenario: A base URL that leads into the own network is skipped, and costs nothing
    Given the chain
      | route | base url |
      | a     | inside   |
      | b     | outside  |
    When the calls end
      | route | endings |
      | b     | ok      |
    Then the moves are
      """
      skip a base_url_refused
      first b k1
      completed
      """
    And the fallback depth is 0

  @Z1 @N11 @A3
  Scenario: Links that are all turned down are not absent, and nothing else serves
    Given the chain
      | route | base url | keys    |
      | a     | inside   | k1      |
      | b     | outside  | missing |
      | c     | inside   | k1      |
    When the calls end
      | route | endings |
      | a     | ok      |
    Then the moves are
      """
      refused no_route_allowed
      """
    And nobody was called
    And the answer is "no_route_allowed" with status 503

  @N7 @N11
  Scenario: Links that are all absent have another answer than links that are turned down
    Given the chain
      | route | skip       |
      | a     | unresolved |
      | b     | unresolved |
    When the calls end
      | route | endings |
      | a     | ok      |
    Then the moves are
      """
      refused chain_unavailable
      """

  @Z1 @W15 @H1
  Scenario: A name that turns out to resolve inside fails its attempt, once, and is no outage
    Given the chain
      | route |
      | a     |
      | b     |
    When the calls end
      | route | endings          |
      | a     | base_url_refused |
      | b     | ok               |
    Then the moves are
      """
      first a k1
      failover b k1
      completed
      """
    When the calls end
      | route | endings          |
      | a     | base_url_refused |
      | b     | ok               |
    Then the moves are
      """
      first a k1
      failover b k1
      completed
      """

  @Z1 @N11 @W16
  Scenario Outline: Nobody could be reached: turned down everywhere, or not
    Given the chain
      | route |
      | a     |
      | b     |
    When the calls end
      | route | endings          |
      | a     | base_url_refused |
      | b     | <other>          |
    Then the answer is "<code>" with status <status>
    And the envelope lists "<envelope>"

    Examples:
      | other            | code               | status | envelope                                               |
      | base_url_refused | no_route_allowed   | 503    | a base_url_refused, b base_url_refused                 |
      | connect_error    | upstream_exhausted | 502    | a base_url_refused, b connect_error, b connect_error   |

  @W13
  Scenario: A lost answer may stop the walk where the model says so
    Given the chain
      | route |
      | a     |
      | b     |
    And lost answers stop the walk
    When the calls end
      | route | endings     |
      | a     | bad_payload |
    Then the moves are
      """
      first a k1
      failed answer_lost
      """

  @S2 @S3
  Scenario: Nothing starts after the commit
    Given the chain
      | route |
      | a     |
      | b     |
    When the calls end
      | route | endings                    |
      | a     | committed stream_truncated |
      | b     | ok                         |
    Then the moves are
      """
      first a k1
      truncated upstream_truncated
      """

  @S7
  Scenario: A client that leaves ends the walk, before the commit and after it
    Given the chain
      | route |
      | a     |
      | b     |
    When the calls end
      | route | endings          |
      | a     | client_cancelled |
    Then the moves are
      """
      first a k1
      client_cancelled client_cancelled
      """
    When the calls end
      | route | endings                    |
      | a     | committed client_cancelled |
    Then the moves are
      """
      first a k1
      client_cancelled client_cancelled
      """

  @W16 @W21
  Scenario: When all fail there is one envelope, and it lists them in order
    Given the chain
      | route |
      | a     |
      | b     |
      | c     |
    When the calls end
      | route | endings            |
      | a     | provider_auth      |
      | b     | timeout_first_byte |
      | c     | provider_quota     |
    Then the answer is "upstream_exhausted" with status 502
    And the envelope lists "a provider_auth, b timeout_first_byte, c provider_quota"

  @M13 @M16 @Q1
  Scenario: A spent budget stops the walk without a call
    Given the chain
      | route |
      | a     |
    And the organization may spend 0.000001 USD
    When the calls end
      | route | endings |
      | a     | ok      |
    Then the moves are
      """
      refused insufficient_quota
      """
    And nobody was called

  @N19
  Scenario: Scheduling orders rungs within their group and never across a reference
    Given the chain
      | route | stage |
      | a1    | 0     |
      | a2    | 0     |
      | b1    | 1     |
      | b2    | 1     |
      | a3    | 2     |
      | a4    | 2     |
    And every stage is ordered by affinity
    When 100 conversations ask and no route can serve
    Then each was tried on "a1 a2, b1 b2, a3 a4", in any order within a group
    And every group was tried in either order

  @N20 @T2
  Scenario: A child keeps its own policy
    Given the chain
      | route | model | mode                  |
      | a     | fable | maximize_availability |
      | b     | older | maximize_cache        |
      | c     | least | maximize_availability |
    When the calls end
      | route | endings   |
      | a     | throttled |
      | b     | throttled |
    Then the moves are
      """
      first a k1
      model_change b k1
      failed provider_throttled
      """
