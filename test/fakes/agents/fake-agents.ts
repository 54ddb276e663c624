/** The modelled agents of the simulation, as tests name them. */
export {
  createModelAgents as createFakeAgents,
  type ModelAgents as FakeAgents,
} from '../../../validator/simulate/fleet/model-agents.ts';
export type { ModelHost as FakeHost } from '../../../validator/simulate/fleet/model-host.ts';
