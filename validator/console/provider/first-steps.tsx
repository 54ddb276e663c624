import { CommandBlock } from '../parts/command-block.tsx';
import { Panel } from '../parts/panel.tsx';

/** Steps of the provider until a validator can check a new node. */
export function FirstSteps({ id }: { id: string }) {
  return (
    <Panel title="Next steps until renters can rent the node">
      <ol className="first-steps">
        <li>
          <p>Print the variables of the agent, and set them on the host.</p>
          <CommandBlock
            label="Variables of the agent"
            command={`npm run --silent provider -- variables ${id}`}
          />
        </li>
        <li>
          <p>
            Enrol the agent’s key. The first and the last command run on the host, the second on the
            computer with your hotkey.
          </p>
          <CommandBlock
            label="Enrol the agent’s key"
            command={[
              'npm run --silent agent -- enrol request',
              "npm run --silent provider -- enrol '<line that request printed>'",
              "npm run --silent agent -- enrol accept '<line that provider printed>'",
            ].join('\n')}
          />
        </li>
        <li>
          <p>Start the agent on the host, or install it as a service.</p>
          <CommandBlock
            label="Start the agent"
            command={`env $(npm run --silent provider -- variables ${id}) npm run host`}
          />
        </li>
        <li>
          A validator then contacts the agent and checks the host. This page shows each check with
          its result, and remedies for failures.
        </li>
        <li>When all checks pass, the state becomes available and renters find the node.</li>
      </ol>
    </Panel>
  );
}
