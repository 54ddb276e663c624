/** Requests that the form of a rental sends. Pure. */
import type { CreateTemplate, RentExecutorRequest, TemplateResponse } from '../api/api.gen.ts';
import { ApiFailure } from '../api/failure.ts';

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

export type Environment = { variables: Record<string, string>; problem: string | null };

/** Reads lines `NAME=value`. Empty lines and lines that begin with `#` are comments. */
export function environmentIn(text: string): Environment {
  const variables: Record<string, string> = {};
  for (const [at, line] of text.split('\n').entries()) {
    const trimmed = line.trim();
    if (trimmed === '' || trimmed.startsWith('#')) continue;
    const [, name, value] = /^([A-Za-z_]\w{0,127})=(.*)$/.exec(line.trimStart()) ?? [];
    if (name === undefined || value === undefined) {
      return { variables, problem: `Line ${at + 1} is not NAME=value.` };
    }
    variables[name] = value;
  }
  return { variables, problem: null };
}

export type Ports = { ports: number[]; problem: string | null };

/** Reads port numbers that are separated by commas or spaces. */
export function portsIn(text: string): Ports {
  const parts = text.split(/[\s,]+/).filter((part) => part !== '');
  const bad = parts.find(
    (part) => !/^\d+$/.test(part) || Number(part) < 1 || Number(part) > 65_535,
  );
  return {
    ports: [...new Set(parts.map(Number))],
    problem: bad === undefined ? null : `${bad} is not a port from 1 to 65535.`,
  };
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
  const { variables } = environmentIn(values.environment);
  const { ports } = portsIn(values.internal_ports);
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

const INCOMPLETE = 'form_incomplete';

/** Failure of a form that was not sent. */
export function incomplete(obstacle: string): ApiFailure {
  return new ApiFailure(obstacle, {
    status: 0,
    code: INCOMPLETE,
    hint: 'Change the form and send it again. Nothing was rented.',
    requestId: null,
    problems: [],
  });
}

/** First reason why the form cannot be sent; null if it can. */
export function obstacleOf(values: RentValues): string | null {
  if (values.source === 'template' && values.template_id === '') return 'Choose a template.';
  if (values.source === 'dockerfile' && values.dockerfile_content.trim() === '') {
    return 'Enter a Dockerfile.';
  }
  if (values.source === 'dockerfile') return null;
  return environmentIn(values.environment).problem ?? portsIn(values.internal_ports).problem;
}
