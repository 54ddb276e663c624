import { expect, it } from 'vitest';
import type { TemplateResponse } from '../api/api.gen.ts';
import { imageOf, type Owner, ownerOf } from './template-list.ts';

const template = (change: Partial<TemplateResponse>): TemplateResponse => ({
  id: 't',
  name: 'PyTorch',
  description: 'for training',
  docker_image: 'registry.example.com:5000/torch',
  docker_image_tag: '',
  docker_image_digest: '',
  docker_image_size: null,
  category: 'PYTORCH',
  status: 'CREATED',
  user_id: null,
  is_private: false,
  internal_ports: [],
  environment: {},
  entrypoint: '',
  startup_commands: '',
  volumes: [],
  readme: '',
  tags: ['large'],
  one_time_template: false,
  is_temporary: false,
  container_start_immediately: true,
  supports_docker: null,
  docker_credential_id: null,
  created_at: '2026-01-01T00:00:00',
  updated_at: '2026-01-01T00:00:00',
  ...change,
});

it.each<[string | null, Owner]>([
  [null, 'official'],
  ['me', 'own'],
  ['other', 'shared'],
])('a template of %s is %s', (userId, owner) => {
  expect(ownerOf(template({ user_id: userId }), 'me')).toBe(owner);
});

it.each<[Partial<TemplateResponse>, string]>([
  [{}, 'registry.example.com:5000/torch'],
  [{ docker_image_tag: '2' }, 'registry.example.com:5000/torch:2'],
  [{ docker_image_digest: 'sha256:ab' }, 'registry.example.com:5000/torch@sha256:ab'],
])('names the image of %j', (change, name) => expect(imageOf(template(change))).toBe(name));
