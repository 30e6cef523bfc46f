package event

import "github.com/sluice-gateway/sluice/domain/request"

// requestEvents are the events of stream request/<uuidv7>.
var requestEvents = []definition{
	define[request.RequestAdmitted]("request_admitted"),
	define[request.RequestRefused]("request_refused"),
	define[request.RouteSkipped]("route_skipped"),
	define[request.AttemptReserved]("attempt_reserved"),
	define[request.AttemptThrottled]("attempt_throttled"),
	define[request.ThrottleDecided]("throttle_decided"),
	define[request.AttemptFailed]("attempt_failed"),
	define[request.AttemptCommitted]("attempt_committed"),
	define[request.AttemptSettled]("attempt_settled"),
	define[request.ReservationReleased]("reservation_released"),
	define[request.ReservationOverrun]("reservation_overrun"),
	define[request.MeterHoldPlaced]("meter_hold_placed"),
	define[request.MeterHoldResolved]("meter_hold_resolved"),
	define[request.LimitObserved]("limit_observed"),
	define[request.BudgetThresholdReached]("budget_threshold_reached"),
	define[request.ModelChanged]("model_changed"),
	define[request.RequestFinalized]("request_finalized"),
}
