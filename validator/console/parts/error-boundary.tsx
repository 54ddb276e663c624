import { useQueryClient } from '@tanstack/react-query';
import { Component, type ReactNode } from 'react';
import { FailureNotice } from './failure-notice.tsx';

type Props = {
  children: ReactNode;
  onRetry?: (() => void) | undefined;
  /** The error ends when this value changes, for example with new data. */
  resetKey?: unknown;
};
type State = { error: unknown };

/** Shows an error of its children in their place; the rest of the page works on. */
export function ErrorBoundary({ onRetry, ...props }: Props) {
  const queries = useQueryClient();
  const retry = () => {
    // The children may have failed at answers that only they read. Such answers have no reader now.
    queries.removeQueries({ type: 'inactive' });
    onRetry?.();
  };
  return <Boundary {...props} onRetry={retry} />;
}

class Boundary extends Component<Props, State> {
  override state: State = { error: null };

  static getDerivedStateFromError(error: unknown): State {
    return { error };
  }

  override componentDidUpdate({ resetKey }: Props): void {
    if (this.state.error !== null && resetKey !== this.props.resetKey) this.end();
  }

  override render(): ReactNode {
    const { error } = this.state;
    if (error === null) return this.props.children;
    return <FailureNotice error={error} retry={() => this.retry()} />;
  }

  private retry(): void {
    this.props.onRetry?.();
    this.end();
  }

  private end(): void {
    this.setState({ error: null });
  }
}
