/** The checks of what renters have: their pods and the cards of these. */
import type { Check } from './check.ts';
import { row } from './check-row.ts';
import * as rented from './rented.check.ts';

export const RENTED_CHECKS: readonly Check[] = [
  row({
    id: 'gpu_drop',
    detects: 'a card that a renter pays for and the host has no more',
    required: 'every card of a pod is there',
    category: 'runtime',
    whileRented: true,
    judge: rented.judgeGpuDrop,
    remedies: { RENTED_GPU_LOST: 'Look at the conditions of the pod; reset or reseat the card.' },
  }),
  row({
    id: 'gpu_side_use',
    detects: 'somebody at work on the card of a renter',
    required: 'no process but the pod’s on a leased card',
    category: 'policy',
    whileRented: true,
    judge: rented.judgeSideUse,
    remedies: {
      GPU_PROCESS_OUTSIDE_POD: 'Stop the processes that nvidia-smi shows beside the pod.',
    },
  }),
  row({
    id: 'pod_alive',
    detects: 'a rented host that ended its pod',
    required: 'the pod of a rented host runs, or was ended by something else',
    category: 'runtime',
    whileRented: true,
    judge: rented.judgePodAlive,
    remedies: { POD_NOT_RUNNING: 'Look at why the pod ended: its events say so.' },
  }),
  row({
    id: 'ledger',
    detects: 'a host whose pods are others than those that are rented',
    required: 'the pods that the market knows there, and no others',
    category: 'runtime',
    mode: 'shadow',
    whileRented: true,
    judge: rented.judgeLedger,
    remedies: {
      POD_NOT_RENTED:
        'Look at `orphans` and pods of the agent; `remove-all` takes away what is left.',
      RENTED_POD_MISSING: 'Look at the log of the agent for what became of the pod.',
    },
  }),
];
