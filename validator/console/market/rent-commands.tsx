import type { CreateTemplate } from '../api/api.gen.ts';
import { CommandBlock } from '../parts/command-block.tsx';
import { Panel } from '../parts/panel.tsx';
import { curlOf, templateCommand } from './curl.ts';

type RentCommandsProps = {
  path: string;
  body: object;
  /** Template that is created first; null for none. */
  template: CreateTemplate | null;
  idempotencyKey: string;
};

/** The same rental for a shell. */
export function RentCommands({ path, body, template, idempotencyKey }: RentCommandsProps) {
  const { origin } = window.location;
  return (
    <Panel title="The same as a command">
      <p className="hint">
        Set KEY to an API key that may rent. The command contains environment variables, but no key
        of yours.
      </p>
      {template === null ? null : (
        <CommandBlock
          label="1. Create the template with the environment and ports"
          command={templateCommand(origin, template)}
        />
      )}
      <CommandBlock
        label={template === null ? 'Rent the pod' : '2. Rent the pod'}
        command={curlOf({ origin, path, body }, idempotencyKey)}
      />
    </Panel>
  );
}
