/** Converts a template to the values of its form, and back to a request. Pure. */
import type { CreateTemplate, DockerCredential, TemplateResponse } from '../api/api.gen.ts';
import { environmentText, readEnvironment, readPorts } from '../parts/container-text.ts';
import { requireReadable } from '../parts/form-problems.ts';

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
    environment: environmentText(template.environment),
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

/** Throws an `ApiFailure` with all problems of the fields whose text cannot be read. */
export function bodyOf(values: TemplateValues): CreateTemplate {
  const ports = readPorts(values.internal_ports);
  const environment = readEnvironment(values.environment);
  requireReadable({ internal_ports: ports, environment });
  return {
    ...values,
    docker_credential_id: values.docker_credential_id || null,
    internal_ports: ports.value,
    environment: environment.value,
    volumes: linesOf(values.volumes),
    tags: partsOf(values.tags, ','),
  };
}

function linesOf(text: string): string[] {
  return text.split('\n').filter((line) => line.trim() !== '');
}

function partsOf(text: string, separator: string): string[] {
  const parts = text.split(separator).map((part) => part.trim());
  return parts.filter((part) => part !== '');
}

/** Name of a registry login, which is optional. */
export function loginName({ name, docker_username: user }: DockerCredential): string {
  return name ?? user;
}
