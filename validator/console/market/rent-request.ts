/** Requests that the form of a rental sends. Pure. */
import type { CreateTemplate, RentExecutorRequest, TemplateResponse } from '../api/api.gen.ts';
import type { FieldProblem } from '../api/failure.ts';
import { readEnvironment, readPorts } from '../parts/container-text.ts';
import { textProblems } from '../parts/form-problems.ts';

/** Values of the form. Lists are texts with one entry per line. */
export type RentValues = {
  pod_name: string;
  source: 'template' | 'dockerfile';
  template_id: string;
  dockerfile_content: string;
  gpu_count: number | null;
  /** Ids of SSH keys. */
  user_public_key: string;
  /** Ports of the container; empty for those of the template. */
  internal_ports: string;
  initial_port_count: number | null;
  /** Lines `NAME=value`. */
  environment: string;
  secret_names: string;
  volume_id: string;
  termination_hours: number | null;
  idle_shutdown_minutes: number | null;
  max_spend_usd: number | null;
  enable_jupyter: boolean;
};

export type KnownKey = { id: string; public_key: string };

export function linesOf(text: string): string[] {
  return text
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '');
}

/**
 * Template to create for a rental with an environment or with other ports, because these are members of a template;
 * null if the chosen template is rented as it is. The API deletes the template after its pod.
 */
export function oneTimeTemplate(
  values: RentValues,
  template: TemplateResponse | undefined,
): CreateTemplate | null {
  if (values.source !== 'template' || template === undefined) return null;
  const { value: variables } = readEnvironment(values.environment);
  const { value: ports } = readPorts(values.internal_ports);
  if (Object.keys(variables).length === 0 && ports.length === 0) return null;
  return {
    name: template.name,
    docker_image: template.docker_image,
    docker_image_tag: template.docker_image_tag,
    docker_image_digest: template.docker_image_digest,
    docker_image_size: template.docker_image_size,
    category: template.category,
    is_private: true,
    internal_ports: ports.length === 0 ? template.internal_ports : ports,
    environment: { ...template.environment, ...variables },
    entrypoint: template.entrypoint,
    startup_commands: template.startup_commands,
    volumes: template.volumes,
    docker_credential_id: template.docker_credential_id,
    one_time_template: true,
  };
}

/** Body of the rental. `templateId` replaces the chosen template. Absent limits are left out. */
export function rentBody(
  values: RentValues,
  keys: readonly KnownKey[],
  templateId = values.template_id,
): RentExecutorRequest {
  const chosen = new Set(linesOf(values.user_public_key));
  const publicKeys = keys.filter(({ id }) => chosen.has(id)).map((key) => key.public_key);
  const secrets = linesOf(values.secret_names);
  const optional = {
    gpu_count: values.gpu_count,
    initial_port_count: values.initial_port_count,
    termination_hours: values.termination_hours,
    idle_shutdown_minutes: values.idle_shutdown_minutes,
    max_spend_usd: values.max_spend_usd,
  };
  return {
    pod_name: values.pod_name,
    ...(values.source === 'template'
      ? { template_id: templateId }
      : { dockerfile_content: values.dockerfile_content }),
    ...Object.fromEntries(Object.entries(optional).filter(([, value]) => value !== null)),
    ...(publicKeys.length === 0 ? {} : { user_public_key: publicKeys }),
    ...(secrets.length === 0 ? {} : { secret_names: secrets }),
    ...(values.volume_id === '' ? {} : { volume_id: values.volume_id }),
    ...(values.enable_jupyter ? { enable_jupyter: true } : {}),
  };
}

/** Problems of the typed environment and ports. A rental with a Dockerfile does not have these fields. */
export function problemsIn(values: RentValues): FieldProblem[] {
  if (values.source === 'dockerfile') return [];
  return textProblems({
    environment: readEnvironment(values.environment),
    internal_ports: readPorts(values.internal_ports),
  });
}

/** Missing part of the form, as a request to the reader; null if it is complete. */
export function missingIn(values: RentValues): string | null {
  if (values.source === 'template' && values.template_id === '') return 'Choose a template.';
  if (values.source === 'dockerfile' && values.dockerfile_content.trim() === '') {
    return 'Enter a Dockerfile.';
  }
  return null;
}

/** First reason why the form cannot be sent; null if it can. */
export function obstacleOf(values: RentValues): string | null {
  return missingIn(values) ?? problemsIn(values)[0]?.message ?? null;
}
