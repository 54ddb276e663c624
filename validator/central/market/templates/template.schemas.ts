/** Requests and responses of the template routes. */

import { z } from 'zod';
import { MAX_VOLUME_PATH_CHARS, MAX_VOLUMES } from '#shared/api/agent/volumes.ts';
import { described } from '#shared/api/described.ts';
import { CREATED_AT, PAGE, UPDATED_AT } from '../../platform/openapi/field-texts.ts';
import { PageQuery } from '../../platform/portal-answer.ts';
import {
  displayName,
  NaiveTime,
  optional,
  queryNumber,
  Uuid,
  withDefault,
} from '../../platform/wire.ts';

export const TEMPLATE_CATEGORIES = [
  'DOCKER',
  'PYTORCH',
  'NVIDIA',
  'TENSOR_FLOW',
  'OPEN_AI',
  'UBUNTU',
] as const;
export const TEMPLATE_STATUSES = [
  'CREATED',
  'UPDATED',
  'VERIFY_PENDING',
  'VERIFY_SUCCESS',
  'VERIFY_FAILED',
] as const;

const NoNul = z.string().refine((text) => !text.includes('\0'), 'Contains a NUL character');
const Environment = z
  .record(
    z.string().regex(/^[A-Za-z_][A-Za-z0-9_]{0,127}$/, 'Not a variable name'),
    NoNul.max(32_768),
  )
  .refine((variables) => Object.keys(variables).length <= 256, 'More than 256 variables');

/** Members that the owner may set, with their limits. */
const fields = {
  name: displayName(200),
  description: z.string().max(4_000),
  docker_image: z.string().trim().min(1).max(512),
  docker_image_tag: z.string().trim().max(256),
  docker_image_digest: z.string().trim().max(128),
  docker_image_size: z.int().min(0),
  category: z.enum(TEMPLATE_CATEGORIES),
  is_private: z.boolean(),
  internal_ports: z.array(z.int().min(1).max(65_535)).max(64),
  environment: Environment,
  entrypoint: NoNul.max(4_096),
  startup_commands: NoNul.max(65_536),
  volumes: z.array(z.string().max(MAX_VOLUME_PATH_CHARS)).max(MAX_VOLUMES),
  readme: z.string().max(100_000),
  tags: z.array(displayName(50)).max(20),
  one_time_template: z.boolean(),
  is_temporary: z.boolean(),
  container_start_immediately: z.boolean(),
  docker_credential_id: Uuid,
};

export const CreateTemplate = z
  .object(
    described(
      {
        name: fields.name,
        docker_image: fields.docker_image,
        docker_image_tag: withDefault(fields.docker_image_tag, ''),
        docker_image_digest: withDefault(fields.docker_image_digest, ''),
        docker_image_size: optional(fields.docker_image_size),
        description: withDefault(fields.description, ''),
        category: withDefault(fields.category, 'UBUNTU'),
        is_private: withDefault(fields.is_private, true),
        internal_ports: withDefault(fields.internal_ports, [22, 8000]),
        environment: withDefault(fields.environment, {}),
        entrypoint: withDefault(fields.entrypoint, ''),
        startup_commands: withDefault(fields.startup_commands, ''),
        volumes: withDefault(fields.volumes, ['/workspace']),
        readme: withDefault(fields.readme, ''),
        tags: withDefault(fields.tags, []),
        one_time_template: withDefault(fields.one_time_template, false),
        is_temporary: withDefault(fields.is_temporary, false),
        container_start_immediately: withDefault(fields.container_start_immediately, true),
        docker_credential_id: optional(fields.docker_credential_id),
      },
      {
        name: 'Name of the template, 1 to 200 characters. Several templates may have the same name.',
        docker_image: 'Image without its tag; a registry with a port is allowed.',
        docker_image_tag: 'Tag of the image; empty for `latest`, or for a digest alone.',
        docker_image_digest:
          'Digest of the image (`sha256:…`), which takes precedence over the tag; empty for none.',
        docker_image_size:
          'Compressed size of the image in bytes, as the client states it; absent if unknown.',
        description: 'Description, up to 4000 characters.',
        category: 'Category under which consoles list the template.',
        is_private: 'True if only the account sees the template; if false, all accounts see it.',
        internal_ports: 'Ports of the container that get an external port. 22 is for SSH.',
        environment: 'Environment variables of the container, at most 256.',
        entrypoint:
          "Replaces the image's entrypoint; words as in a shell, without expansion. If empty, the image's entrypoint is used.",
        startup_commands:
          "Arguments of the entrypoint, or commands that the container runs; if empty, the image's command is used.",
        volumes: 'Folders of the container that survive edits, reboots and template switches.',
        readme: 'Instructions in Markdown, up to 100000 characters.',
        tags: 'Words under which consoles list the template, at most 20 of 50 characters.',
        one_time_template:
          'True for a template that can be rented once and is deleted after its pod.',
        is_temporary:
          'True for a template that can be rented once. Unlike a one-time template, the template is kept afterwards.',
        container_start_immediately:
          'Stored for clients; has no effect, because pods always start immediately.',
        docker_credential_id: "Id of the login for the image's registry; absent for public images.",
      },
    ),
  )
  .meta({
    id: 'CreateTemplate',
    example: {
      name: 'pytorch',
      docker_image: 'pytorch/pytorch',
      docker_image_tag: '2.4.0-cuda12.4-cudnn9-runtime',
      internal_ports: [22, 8888],
      environment: { HF_HOME: '/workspace/hf' },
      volumes: ['/workspace'],
    },
  });
export type CreateTemplate = z.output<typeof CreateTemplate>;

/** Changes of a template. Absent and null members are unchanged, so that clients may send a whole template. */
export const templateChanges = described(
  {
    name: optional(fields.name),
    docker_image: optional(fields.docker_image),
    docker_image_tag: optional(fields.docker_image_tag),
    docker_image_digest: optional(fields.docker_image_digest),
    docker_image_size: optional(fields.docker_image_size),
    description: optional(fields.description),
    category: optional(fields.category),
    is_private: optional(fields.is_private),
    internal_ports: optional(fields.internal_ports),
    environment: optional(fields.environment),
    entrypoint: optional(fields.entrypoint),
    startup_commands: optional(fields.startup_commands),
    volumes: optional(fields.volumes),
    readme: optional(fields.readme),
    tags: optional(fields.tags),
    one_time_template: optional(fields.one_time_template),
    is_temporary: optional(fields.is_temporary),
    container_start_immediately: optional(fields.container_start_immediately),
    docker_credential_id: optional(fields.docker_credential_id),
  },
  {
    name: 'New name, 1 to 200 characters.',
    docker_image: 'Image without its tag.',
    docker_image_tag: 'Tag of the image; empty for `latest`, or for a digest alone.',
    docker_image_digest: 'Digest of the image (`sha256:…`); empty for none.',
    docker_image_size: 'Compressed size of the image in bytes, as the client states it.',
    description: 'Description, up to 4000 characters.',
    category: 'Category under which consoles list the template.',
    is_private: 'True if only the account sees the template.',
    internal_ports: 'Ports of the container that get an external port.',
    environment: 'All environment variables of the container, which replace the former variables.',
    entrypoint: "Replaces the image's entrypoint; if empty, the image's entrypoint is used.",
    startup_commands:
      "Arguments of the entrypoint, or commands that the container runs; if empty, the image's command is used.",
    volumes: 'Folders of the container that survive edits, reboots and template switches.',
    readme: 'Instructions in Markdown, up to 100000 characters.',
    tags: 'All tags of the template, which replace the former tags.',
    one_time_template: 'True for a template that can be rented once.',
    is_temporary:
      'True for a template that can be rented once. Unlike a one-time template, the template is kept afterwards.',
    container_start_immediately:
      'Stored for clients; has no effect, because pods always start immediately.',
    docker_credential_id: "Id of the login for the image's registry.",
  },
);
export const UpdateTemplate = z.object(templateChanges).meta({
  id: 'UpdateTemplate',
  example: { name: 'pytorch', environment: { HF_HOME: '/workspace/hf' } },
});
export type UpdateTemplate = z.output<typeof UpdateTemplate>;

export const TEMPLATE_OWNERS = ['official', 'own', 'shared'] as const;
const MAX_QUERY_CHARS = 100;
const MAX_LISTED = 1_000;

export const TemplatesQuery = z
  .object(
    described(
      {
        q: z.string().max(MAX_QUERY_CHARS).default(''),
        owner: z.enum(TEMPLATE_OWNERS).optional(),
        page: PageQuery.shape.page,
        limit: queryNumber(z.int().min(1).max(MAX_LISTED)).optional(),
      },
      {
        q: 'Words, each of which must be in the name, image, description or tags, ignoring case; absent for all templates.',
        owner:
          "`official`: only templates of the marketplace; `own`: only the account's templates; `shared`: only public templates of other accounts. Absent for all.",
        page: PAGE,
        limit: 'Maximum number of templates per page, 1 to 1000; absent for all templates.',
      },
    ),
  )
  .meta({ example: { q: 'torch', owner: 'official', page: 1, limit: 20 } });
export type TemplatesQuery = z.output<typeof TemplatesQuery>;

export const TemplateResponse = z
  .object(
    described(
      {
        id: z.uuid(),
        name: z.string(),
        description: z.string(),
        docker_image: z.string(),
        docker_image_tag: z.string(),
        docker_image_digest: z.string(),
        docker_image_size: z.int().nullable(),
        category: z.enum(TEMPLATE_CATEGORIES),
        status: z.enum(TEMPLATE_STATUSES),
        user_id: z.uuid().nullable(),
        is_private: z.boolean(),
        internal_ports: z.array(z.int()),
        environment: z.record(z.string(), z.string()),
        entrypoint: z.string(),
        startup_commands: z.string(),
        volumes: z.array(z.string()),
        readme: z.string(),
        // Absent in rows that were stored before templates had tags.
        tags: z.array(z.string()).default([]),
        one_time_template: z.boolean(),
        is_temporary: z.boolean(),
        container_start_immediately: z.boolean(),
        supports_docker: z.boolean().nullable(),
        docker_credential_id: z.uuid().nullable(),
        created_at: NaiveTime,
        updated_at: NaiveTime,
      },
      {
        id: 'Id of the template.',
        name: 'Name of the template.',
        description: 'Description of the template; may be empty.',
        docker_image: 'Image without its tag.',
        docker_image_tag: 'Tag of the image; may be empty.',
        docker_image_digest: 'Digest of the image; empty for none.',
        docker_image_size:
          'Compressed size of the image in bytes, as the owner stated it; null if not stated.',
        category: 'Category under which consoles list the template.',
        status:
          'State of the check that the image can be pulled. Clients poll until `VERIFY_SUCCESS` or `VERIFY_FAILED`.',
        user_id: 'Id of the owning account; null for an official template.',
        is_private: 'True if only its owner sees the template.',
        internal_ports: 'Ports of the container that get an external port.',
        environment: 'Environment variables of the container.',
        entrypoint: "Replaces the image's entrypoint; if empty, the image's entrypoint is used.",
        startup_commands:
          "Arguments of the entrypoint, or commands that the container runs; if empty, the image's command is used.",
        volumes: 'Folders of the container that survive edits, reboots and template switches.',
        readme: 'Instructions in Markdown; may be empty.',
        tags: 'Words under which consoles list the template; may be empty.',
        one_time_template:
          'True for a template that can be rented once and is deleted after its pod.',
        is_temporary:
          'True for a template that can be rented once. Unlike a one-time template, the template is kept afterwards.',
        container_start_immediately:
          'Stored for clients; has no effect, because pods always start immediately.',
        supports_docker:
          'Always null, because the node determines whether containers can run inside the pod.',
        docker_credential_id:
          "Id of the login for the image's registry; null for none, and for templates of other accounts.",
        created_at: CREATED_AT,
        updated_at: UPDATED_AT,
      },
    ),
  )
  .meta({ id: 'TemplateResponse' });
export type TemplateResponse = z.output<typeof TemplateResponse>;
