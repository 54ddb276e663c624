/** Converts a template to the values of its form, and back to a request. Pure. */
import type { CreateTemplate, DockerCredential, TemplateResponse } from '../api/api.gen.ts';
import { ApiFailure } from '../api/failure.ts';

export type TemplateValues = {
  name: string;
  description: string;
  docker_image: string;
  docker_image_tag: string;
  docker_image_digest: string;
  docker_credential_id: string;
  category: TemplateResponse['category'];
  is_private: boolean;
  /** Numbers, separated by spaces or commas. */
  internal_ports: string;
  /** Lines `NAME=value`. */
  environment: string;
  /** One folder on each line. */
  volumes: string;
  entrypoint: string;
  startup_commands: string;
  /** Words, separated by commas. */
  tags: string;
  readme: string;
};

export const CATEGORIES = [
  'DOCKER',
  'PYTORCH',
  'NVIDIA',
  'TENSOR_FLOW',
  'OPEN_AI',
  'UBUNTU',
] as const;

export const NEW_TEMPLATE: TemplateValues = {
  name: '',
  description: '',
  docker_image: '',
  docker_image_tag: '',
  docker_image_digest: '',
  docker_credential_id: '',
  category: 'UBUNTU',
  is_private: true,
  internal_ports: '22',
  environment: '',
  volumes: '/workspace',
  entrypoint: '',
  startup_commands: '',
  tags: '',
  readme: '',
};

export function valuesOf(template: TemplateResponse): TemplateValues {
  const variables = Object.entries(template.environment);
  return {
    name: template.name,
    description: template.description,
    docker_image: template.docker_image,
    docker_image_tag: template.docker_image_tag,
    docker_image_digest: template.docker_image_digest,
    docker_credential_id: template.docker_credential_id ?? '',
    category: template.category,
    is_private: template.is_private,
    internal_ports: template.internal_ports.join(', '),
    environment: variables.map(([name, value]) => `${name}=${value}`).join('\n'),
    volumes: template.volumes.join('\n'),
    entrypoint: template.entrypoint,
    startup_commands: template.startup_commands,
    tags: template.tags.join(', '),
    readme: template.readme,
  };
}

/** Values of a copy, which the account owns and only the account sees. */
export function copyOf(template: TemplateResponse): TemplateValues {
  return { ...valuesOf(template), name: `${template.name} (copy)`, is_private: true };
}

/** Throws an `ApiFailure` with the problem of a field whose text cannot be read. */
export function bodyOf(values: TemplateValues): CreateTemplate {
  return {
    ...values,
    docker_credential_id: values.docker_credential_id || null,
    internal_ports: portsOf(values.internal_ports),
    environment: environmentOf(values.environment),
    volumes: linesOf(values.volumes),
    tags: partsOf(values.tags, ','),
  };
}

function portsOf(text: string): number[] {
  return partsOf(text, /[\s,]+/).map((part) => {
    if (/^\d{1,5}$/.test(part)) return Number(part);
    throw unreadable('internal_ports', `“${part}” is not a port. Enter numbers such as 22, 8080.`);
  });
}

function environmentOf(text: string): Record<string, string> {
  const variables = linesOf(text).map((line): [string, string] => {
    const at = line.indexOf('=');
    if (at > 0) return [line.slice(0, at).trim(), line.slice(at + 1)];
    throw unreadable('environment', `“${line}” is not a line such as NAME=value.`);
  });
  return Object.fromEntries(variables);
}

function linesOf(text: string): string[] {
  return text.split('\n').filter((line) => line.trim() !== '');
}

function partsOf(text: string, separator: string | RegExp): string[] {
  const parts = text.split(separator).map((part) => part.trim());
  return parts.filter((part) => part !== '');
}

function unreadable(field: string, message: string): ApiFailure {
  return new ApiFailure('A field cannot be read', {
    status: 0,
    code: 'invalid_input',
    hint: 'Correct the marked field.',
    requestId: null,
    problems: [{ field: `body.${field}`, message }],
  });
}

/** Name of a registry login, which is optional. */
export function loginName({ name, docker_username: user }: DockerCredential): string {
  return name ?? user;
}
