import './styles.css';
import { createRoot } from 'react-dom/client';
import { applyTheme } from './parts/theme.tsx';
import { App } from './shell/app.tsx';

applyTheme();
const root = document.getElementById('root');
if (root !== null) createRoot(root).render(<App />);
