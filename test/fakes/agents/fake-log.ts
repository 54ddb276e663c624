/** The log of a modelled agent, as tests name it. */
export { modelLine as fakeLine } from '../../../validator/simulate/fleet/model-log.ts';
