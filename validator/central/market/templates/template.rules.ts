/** What a renter may not ask of the places that a template names in its containers. Pure. */
import { OWN_SSHD, reservedVariable } from '#shared/api/agent/pod.ts';
import { volumesProblem } from '#shared/api/agent/volumes.ts';
import { ApiError } from '#shared/runtime/errors.ts';

/**
 * Looks at what a request gives, not at what is stored. Throws `template_invalid` naming the first path or
 * variable that no pod can have (contract 8).
 */
export function checkTemplatePlaces(given: {
  volumes?: readonly string[] | undefined;
  environment?: Readonly<Record<string, string>> | undefined;
}): void {
  const { volumes = [], environment = {} } = given;
  const reserved = reservedVariable(environment);
  if (reserved !== null) {
    throw new ApiError('template_invalid', `environment: ${reserved} is set by the marketplace`, {
      hint: `Names that begin with PODWRIGHT_ are reserved, but for ${OWN_SSHD}.`,
    });
  }
  if (!['', '0', '1', undefined].includes(environment[OWN_SSHD])) {
    throw new ApiError('template_invalid', `environment: ${OWN_SSHD} is neither 0 nor 1`);
  }
  const problem = volumesProblem(volumes);
  if (problem !== null) {
    throw new ApiError('template_invalid', `volumes: ${problem}`, {
      hint: 'Name separate folders of the container, such as /workspace.',
    });
  }
}
