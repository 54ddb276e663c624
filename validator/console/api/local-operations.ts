/**
 * Types of the routes below /api/_local of a simulated marketplace, which the description of the API omits. They follow
 * validator/simulate/live/clock.schemas.ts.
 */

export type ClockState = {
  status: 'paused' | 'running' | 'advancing';
  time: string;
  started_at: string;
  advances_until: string | null;
  speed: number | null;
  events: number;
  violation: string | null;
  note: string | null;
};

export type ChangeClock =
  | { action: 'advance'; seconds: number }
  | { action: 'pause' }
  | { action: 'run'; speed: number };

export type FaultList = {
  faults: {
    /** By which the fault can be ended. */
    number: number;
    kind: string;
    executor_id: string | null;
    executor_huid: string | null;
    region: string | null;
    since: string;
    until: string;
  }[];
  regions: string[];
};

export type BeginFault = { kind: string } & Record<string, string | number | null>;

export type EventList = {
  events: {
    number: number;
    at: string;
    kind: string;
    executor_huid: string | null;
    details: Record<string, string | number | boolean | null>;
  }[];
};

type None = Record<string, never>;
type Read<Response> = { params: None; query: None; body: undefined; response: Response };
type Change<Body, Response> = { params: None; query: None; body: Body; response: Response };

export type LocalOperations = {
  'GET /_local/clock': Read<ClockState>;
  'POST /_local/clock': Change<ChangeClock, ClockState>;
  'GET /_local/faults': Read<FaultList>;
  'POST /_local/faults': Change<BeginFault, FaultList>;
  'DELETE /_local/faults/{number}': {
    params: { number: number };
    query: None;
    body: undefined;
    response: FaultList;
  };
  'GET /_local/events': Read<EventList>;
};
