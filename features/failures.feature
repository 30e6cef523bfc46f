Feature: Every failure has one class, and the class alone decides

  The whole table of failures: may the same route be tried again, may another
  route be tried, which health record is touched, and what the caller gets when
  nothing else serves.

  @W1 @W2 @W3 @W5 @W8 @W9 @W11 @W12 @H2 @H3
  Scenario Outline: A route fails with <class>
    Given a model with two routes
    When the first route always fails with "<class>" and the second serves
    Then the same route is tried again: <same>
    And the other route is tried: <other>
    And the health record touched is "<health>"
    And the attempt may have been billed: <billed>
    When every route always fails with "<class>"
    Then the caller gets "<code>" with status <status>
    And the caller is told to retry: <retry>

    Examples: Another route may serve
      | class              | same | other | health      | billed | code               | status | retry |
      | connect_error      | yes  | yes   | operational | no     | upstream_exhausted | 502    | yes   |
      | timeout_first_byte | no   | yes   | operational | yes    | upstream_exhausted | 502    | yes   |
      | timeout_attempt    | no   | yes   | operational | yes    | upstream_exhausted | 502    | yes   |
      | server_error       | yes  | yes   | operational | no     | upstream_exhausted | 502    | yes   |
      | stream_truncated   | yes  | yes   | operational | yes    | upstream_truncated | 502    | yes   |
      | stream_error_event | yes  | yes   | operational | no     | upstream_exhausted | 502    | yes   |
      | throttled          | no   | yes   | throttle    | no     | provider_throttled | 429    | yes   |
      | provider_auth      | no   | yes   | opens       | no     | upstream_exhausted | 502    | yes   |
      | provider_quota     | no   | yes   | opens       | no     | upstream_exhausted | 502    | yes   |
      | deployment_missing | no   | yes   | opens       | no     | upstream_exhausted | 502    | yes   |
      | bad_payload        | no   | yes   | operational | yes    | upstream_exhausted | 502    | yes   |
      | empty_completion   | no   | yes   | none        | no     | empty_completion   | 502    | yes   |
      | base_url_refused   | no   | yes   | none        | no     | no_route_allowed   | 503    | no    |

    Examples: The request ends here
      | class               | same | other | health | billed | code                         | status | retry |
      | invalid_request     | no   | no    | none   | no     | invalid_request              | 400    | no    |
      | context_length      | no   | no    | none   | no     | context_length_exceeded      | 400    | no    |
      | quota_exceeded      | no   | no    | none   | no     | insufficient_quota           | 429    | no    |
      | content_policy      | no   | no    | none   | no     | invalid_request              | 400    | no    |
      | refusal             | no   | no    | none   | no     | invalid_request              | 400    | no    |
      | client_cancelled    | no   | no    | none   | no     | client_cancelled             | 499    | no    |
      | deadline_exceeded   | no   | no    | none   | no     | deadline_exceeded            | 504    | yes   |
      | customer_credential | no   | no    | none   | no     | customer_credential_rejected | 424    | no    |

  @K5
  Scenario: Reasoning that a provider cannot read is left out, once
    Given a model with two routes
    And the request carries reasoning that only its issuer can read
    When the first route cannot read that reasoning
    Then it is tried again without that reasoning, as a "repair"
    And the other route is tried: no

  @W7
  Scenario: A refusal moves on where the model opts in
    Given a model with two routes
    And the model fails over on refusals
    When the first route always fails with "refusal" and the second serves
    Then the other route is tried: yes

  @W2
  Scenario: A context that was too long moves on to a larger window
    Given a model with two routes
    And the second route has a larger window
    When the first route always fails with "context_length" and the second serves
    Then the other route is tried: yes
