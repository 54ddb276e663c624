/** The program of `npm run validator` as a real process on a free port. */
import { freePorts } from '../free-ports.ts';
import { type ProgramProcess, startProgram } from './program-process.ts';

export type ValidatorProcess = ProgramProcess;

/** Resolves once the process serves; rejects with its output when it exits before that. */
export async function startValidatorProcess(
  environment: Record<string, string>,
): Promise<ValidatorProcess> {
  const { first: port } = await freePorts(1);
  return startProgram('validator/main.ts', 'validator ready', {
    VALIDATOR_PORT: String(port),
    VALIDATOR_ACCEPT_SIMULATED: 'true',
    ...environment,
  });
}
