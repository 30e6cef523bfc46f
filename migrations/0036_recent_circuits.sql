-- What circuits said lately: a starting worker reads it, whatever else shares their
-- partition. Only their rows are in it, so that nobody else's append pays for it.

-- +goose NO TRANSACTION
-- +goose Up
create index concurrently if not exists log_events_recent_circuits on log_events_state (recorded_at)
    where stream >= 'circuit/' and stream < 'circuit0';
