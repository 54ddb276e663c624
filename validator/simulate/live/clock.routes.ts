/** Routes below /api/_local: the clock, the faults and the latest events of a simulated marketplace, for operators. */
import type { HttpServer } from '#shared/http/server.ts';
import { type Clock, naiveUtc } from '#shared/runtime/clock.ts';
import { huidOf } from '../../central/market/executors/executor-response.ts';
import {
  BeginFault,
  ChangeClock,
  ClockState,
  EventList,
  FaultList,
  FaultPath,
} from './clock.schemas.ts';
import { noteOf } from './clock-plan.ts';
import type { Control } from './control.ts';

const config = { auth: 'operator' } as const;

const PREFIX = '/api/_local';

/** Header of every response with the simulated time (UTC), so that clients do not compare it with their own time. */
const TIME_HEADER = 'X-Simulated-Time';

/** Adds the routes, and the time to every response. `control` throws while the market is created. */
export function installClock(
  api: HttpServer,
  { clock, control }: { clock: Pick<Clock, 'now'>; control(): Control },
): void {
  api.addHook('onSend', (_, reply, __, done) => {
    void reply.header(TIME_HEADER, naiveUtc(clock.now()));
    done();
  });
  api.get(`${PREFIX}/clock`, { config, schema: { response: { 200: ClockState } } }, async () =>
    clockOf(control()),
  );
  api.post(
    `${PREFIX}/clock`,
    { config, schema: { body: ChangeClock, response: { 200: ClockState } } },
    async ({ body }) => {
      control().change(body);
      return clockOf(control());
    },
  );
  api.get(`${PREFIX}/faults`, { config, schema: { response: { 200: FaultList } } }, async () =>
    faultsOf(control()),
  );
  api.post(
    `${PREFIX}/faults`,
    { config, schema: { body: BeginFault, response: { 200: FaultList } } },
    async ({ body }) => {
      control().begin(body);
      return faultsOf(control());
    },
  );
  api.delete(
    `${PREFIX}/faults/:number`,
    { config, schema: { params: FaultPath, response: { 200: FaultList } } },
    async ({ params }) => {
      control().end(params.number);
      const { faults, ...rest } = faultsOf(control());
      // A killed process needs some time to start.
      return { faults: faults.filter(({ number }) => number !== params.number), ...rest };
    },
  );
  api.get(`${PREFIX}/events`, { config, schema: { response: { 200: EventList } } }, async () => ({
    events: control()
      .events()
      .map(({ number, atMs, event: { kind, ...details } }) => ({
        number,
        at: naiveUtc(atMs),
        kind,
        executor_huid: nameOf(details.executor),
        details: Object.fromEntries(
          Object.entries(details).flatMap(([name, value]) =>
            value === undefined ? [] : [[name, value]],
          ),
        ),
      })),
  }));
}

/** Name of a node; null without one. */
function nameOf(executorId: string | null | undefined): string | null {
  return executorId === null || executorId === undefined ? null : huidOf(executorId);
}

function clockOf(control: Control) {
  const { status, speed, targetMs, nowMs, startedMs, events, violation, jumpMs } = control.state();
  return {
    status,
    time: naiveUtc(nowMs),
    started_at: naiveUtc(startedMs),
    advances_until: targetMs === null ? null : naiveUtc(targetMs),
    speed,
    events,
    violation,
    note: noteOf(jumpMs),
  };
}

function faultsOf(control: Control) {
  return {
    faults: control.faults().map(({ number, kind, executor, region, sinceMs, untilMs }) => ({
      number,
      kind,
      executor_id: executor,
      executor_huid: nameOf(executor),
      region,
      since: naiveUtc(sinceMs),
      until: naiveUtc(untilMs),
    })),
    regions: [...control.regions()],
  };
}
