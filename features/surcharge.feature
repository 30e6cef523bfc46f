Feature: The operator's routes stand behind an organization's own at a surcharge

  # The route "house" is the operator's, offered at 5 percent on top of its list price to
  # an organization that agreed to it and calls "own" with its own credential.

  @M12 @M11 @W23
  Scenario Outline: An own route that fails engages the operator's at a surcharge (<ending>)
    Given the chain
      | route | owner     | surcharge |
      | own   | workspace |           |
      | house |           | 5         |
    And the policy is maximize_availability with threshold none
    When the calls end
      | route | endings  |
      | own   | <ending> |
      | house | ok       |
    Then the moves are
      """
      first own k1<retry>
      surcharge house k1
      completed
      """
    And the fallback kind is "surcharge"
    And the fallback depth is 1

    Examples:
      | ending             | retry         |
      | connect_error      | \nretry own k1 |
      | server_error       | \nretry own k1 |
      | stream_truncated   | \nretry own k1 |
      | timeout_first_byte |               |
      | deployment_missing |               |
      | throttled          |               |

  @M12 @W6
  Scenario Outline: The organization's own credential never buys on the operator's account (<class>)
    Given the chain
      | route | owner     | surcharge |
      | own   | workspace |           |
      | house |           | 5         |
    When the calls end
      | route | endings |
      | own   | <class> |
    Then the moves are
      """
      first own k1
      failed <code>
      """
    And the answer is "<code>" with status <status>
    # Its circuit is no outage either: the one last resort is its own, and then nobody.
    When the calls end
      | route | endings |
      | own   | <class> |
    Then the moves are
      """
      skip own <skip>
      skip house surcharge_not_enabled
      last_resort own k1
      failed <code>
      """
    When the calls end
      | route | endings |
      | own   | <class> |
    Then the moves are
      """
      skip own <skip>
      skip house surcharge_not_enabled
      failed upstream_exhausted
      """
    And nobody was called

    Examples:
      | class          | code                         | status | skip            |
      | provider_auth  | customer_credential_rejected | 424    | credential_open |
      | provider_quota | customer_credential_quota    | 402    | breaker_open    |

  @M12 @W6
  Scenario: A second own route that fails engages it although the first one's key is rejected
    Given the chain
      | route | owner     | surcharge |
      | own   | workspace |           |
      | own2  | workspace |           |
      | house |           | 5         |
    When the calls end
      | route | endings       |
      | own   | provider_auth |
    And the calls end
      | route | endings            |
      | own2  | timeout_first_byte |
      | house | ok                 |
    Then the moves are
      """
      skip own credential_open
      first own2 k1
      surcharge house k1
      completed
      """

  @M12 @H1
  Scenario: An own route that is known to be down engages it without a call
    Given the chain
      | route | owner     | surcharge |
      | own   | workspace |           |
      | house |           | 5         |
    When the calls end
      | route | endings      |
      | own   | server_error |
      | house | ok           |
    And the calls end
      | route | endings |
      | house | ok      |
    Then the moves are
      """
      skip own breaker_open
      surcharge house k1
      completed
      """
    And the skip names the circuit "route"
    And the fallback kind is "surcharge"

  @M12 @H2
  Scenario: An own key that was throttled engages it, and the trail says whose key it was
    Given the chain
      | route | owner     | surcharge |
      | own   | workspace |           |
      | house |           | 5         |
    When the calls end
      | route | endings                   |
      | own   | throttled retry-after 20s |
      | house | ok                        |
    And the calls end
      | route | endings |
      | house | ok      |
    Then the moves are
      """
      skip own throttle_window
      surcharge house k1
      completed
      """
    When 21s go by
    And the calls end
      | route | endings |
      | own   | ok      |
    Then the moves are
      """
      first own k1
      completed
      """
    And the fallback kind is "none"

  @M12 @A4
  Scenario: A request that no own route can serve is no reason for a surcharge
    Given the chain
      | route | owner     | capabilities | surcharge |
      | own   | workspace | chat         |           |
      | house |           | chat, images | 5         |
    And the request needs "images"
    When the calls end
      | route | endings |
      | house | ok      |
    Then the moves are
      """
      refused capability_unavailable
      """
    And nobody was called

  @M12 @A4
  Scenario: An own route that lacks a capability is no failure of the own route that has it
    Given the chain
      | route | owner     | capabilities | surcharge |
      | own   | workspace | chat         |           |
      | own2  | workspace | chat, images |           |
      | house |           | chat, images | 5         |
    And the request needs "images"
    When the calls end
      | route | endings            |
      | own2  | timeout_first_byte |
      | house | ok                 |
    Then the moves are
      """
      skip own capability_missing
      first own2 k1
      surcharge house k1
      completed
      """

  @M12 @W2
  Scenario Outline: What no provider is to blame for engages nothing (<ending>)
    Given the chain
      | route | owner     | window | surcharge |
      | own   | workspace | 10000  |           |
      | house |           | 90000  | 5         |
    When the calls end
      | route | endings  |
      | own   | <ending> |
    Then the moves are
      """
      first own k1<skip>
      failed <code>
      """

    Examples:
      | ending           | skip                               | code                    |
      | invalid_request  |                                    | invalid_request         |
      | context_length   |                                    | context_length_exceeded |
      | empty_completion | \nskip house surcharge_not_enabled | empty_completion        |

  @M12 @C6
  Scenario: A deleted credential is no failure: the chain is unavailable
    Given the chain
      | route | owner     | keys    | override | surcharge |
      | own   | workspace | missing | yes      |           |
      | house |           | k1      | yes      | 5         |
    When the calls end
      | route | endings |
      | house | ok      |
    Then the moves are
      """
      refused chain_unavailable
      """

  @M12 @W6 @H8
  Scenario: An old outage behind a rejected key is no reason while the key is rejected
    Given the chain
      | route | owner     | surcharge |
      | own   | workspace |           |
      | house |           | 5         |
    When the calls end
      | route | endings                     |
      | own   | server_error, provider_auth |
    And the calls end
      | route | endings      |
      | own   | server_error |
      | house | ok           |
    Then the moves are
      """
      skip own credential_open
      skip house surcharge_not_enabled
      last_resort own k1
      surcharge house k1
      completed
      """
    When the calls end
      | route | endings |
      | own   | ok      |
    Then the moves are
      """
      skip own credential_open
      skip house surcharge_not_enabled
      failed upstream_exhausted
      """

  @M12 @N22
  Scenario: A caller that forbids another model still gets the surcharge its organization agreed to
    Given the chain
      | route | owner     | surcharge |
      | own   | workspace |           |
      | house |           | 5         |
    And the caller allows only the same model
    When the calls end
      | route | endings            |
      | own   | timeout_first_byte |
      | house | ok                 |
    Then the moves are
      """
      first own k1
      surcharge house k1
      completed
      """

  @M12 @N22
  Scenario: A caller that allows no fallback gets no surcharge either
    Given the chain
      | route | owner     | surcharge |
      | own   | workspace |           |
      | house |           | 5         |
    And the caller allows no fallback
    When the calls end
      | route | endings            |
      | own   | timeout_first_byte |
    Then the moves are
      """
      first own k1
      failed upstream_exhausted
      """
    When the calls end
      | route | endings            |
      | own   | timeout_first_byte |
    And the calls end
      | route | endings |
      | own   | ok      |
    Then the moves are
      """
      skip own breaker_open
      last_resort own k1
      completed
      """

  @M12 @H8
  Scenario: When everything is shut the own route is the first last resort
    Given the chain
      | route | owner     | surcharge |
      | own   | workspace |           |
      | house |           | 5         |
    When the calls end
      | route | endings      |
      | own   | server_error |
      | house | server_error |
    And the calls end
      | route | endings      |
      | own   | server_error |
      | house | ok           |
    Then the moves are
      """
      skip own breaker_open
      skip house breaker_open
      last_resort own k1
      surcharge house k1
      completed
      """

  @M12 @M2 @M7 @M16
  Scenario: The worst case is held with its surcharge
    Given the chain
      | route | owner     | surcharge |
      | own   | workspace |           |
      | house |           | 1000      |
    # 1000 tokens at 3 USD and 100 at 15 USD a million are 0.0045 USD, and ten times that.
    And the organization may spend 0.0494 USD
    When the calls end
      | route | endings            |
      | own   | timeout_first_byte |
      | house | ok                 |
    Then the moves are
      """
      first own k1
      refused insufficient_quota
      """
    Given the organization may spend 0.0495 USD
    And 60s go by
    When the calls end
      | route | endings            |
      | own   | timeout_first_byte |
      | house | ok                 |
    Then the moves are
      """
      first own k1
      surcharge house k1
      completed
      """
    # 900 tokens in and 50 out: 0.00345 USD of list price.
    And the last attempt costs 3450000 nano-USD and a surcharge of 34500000
