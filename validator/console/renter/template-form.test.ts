import { expect, it } from 'vitest';
import type { TemplateResponse } from '../api/api.gen.ts';
import { ApiFailure } from '../api/failure.ts';
import { bodyOf, copyOf, NEW_TEMPLATE, valuesOf } from './template-form.ts';

const TEMPLATE: TemplateResponse = {
  id: 't',
  name: 'mine',
  description: '',
  docker_image: 'registry.example.com/x',
  docker_image_tag: '1',
  docker_image_digest: '',
  docker_image_size: null,
  category: 'PYTORCH',
  status: 'CREATED',
  user_id: null,
  is_private: false,
  internal_ports: [22, 8080],
  environment: { A: 'b=c', EMPTY: '' },
  entrypoint: '',
  startup_commands: 'run\nmore',
  volumes: ['/workspace', '/my data'],
  readme: '',
  tags: ['large', 'two words'],
  one_time_template: false,
  is_temporary: false,
  container_start_immediately: true,
  supports_docker: null,
  docker_credential_id: null,
  created_at: '2026-01-01T00:00:00',
  updated_at: '2026-01-01T00:00:00',
};

it('an unchanged form sends what the template has', () => {
  const body = bodyOf(valuesOf(TEMPLATE));
  for (const [name, value] of Object.entries(body)) expect(TEMPLATE).toHaveProperty(name, value);
});

it('a copy is private and has another name', () => {
  expect(copyOf(TEMPLATE)).toMatchObject({ name: 'mine (copy)', is_private: true });
});

it('accepts ports with spaces, commas and none', () => {
  const ports = (text: string) => bodyOf({ ...NEW_TEMPLATE, internal_ports: text }).internal_ports;
  expect([ports(' 22,80  8080 '), ports('')]).toEqual([[22, 80, 8080], []]);
});

it.each([
  ['internal_ports', '22, ssh'],
  ['internal_ports', '22-30'],
  ['environment', 'A=1\nno variable'],
  ['environment', '=1'],
])('rejects %s %j with a problem at its field', (field, text) => {
  const send = () => bodyOf({ ...NEW_TEMPLATE, [field]: text });
  expect(send).toThrow(ApiFailure);
  try {
    send();
  } catch (error) {
    const problems = error instanceof ApiFailure ? error.facts.problems : [];
    expect(problems.map((problem) => problem.field)).toEqual([`body.${field}`]);
  }
});
