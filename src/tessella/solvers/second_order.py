"""proto"""
from __future__ import annotations
import numpy as np
from scipy.linalg import cho_factor, cho_solve
from tessella.solvers._run import Run, run_to_end
from tessella.solvers._result import SolverStatus
from tessella.solvers._small_sdp import SymmetricVectors, minimise_quadratic
from tessella.svm._newton import free_samples

def second_order(problem, *, tol=1e-3, max_iter=100, time_limit=None, P0=None, w0=None, n_jobs=None, callback=None, add=3, rmax=16, start="align"):
    run = Run("second-order", problem, tol=tol, max_iter=max_iter, time_limit=time_limit, n_jobs=n_jobs, callback=callback)
    return run_to_end(run, lambda r: body(r, P0, w0, add, rmax, start))

def svmtol(run):
    return max(0.1*run.tol, min(1e-3, 0.03*run.gap))

def body(run, P0, w0, add, rmax, start):
    pb=run.problem; ker=pb.kernels; nP=pb.parameters.side
    if start=="identity":
        P=np.eye(nP); K=ker.gram(P,centred=True); w=run.svm(K,P,w0,1e-2).w
        pt=run.record(P,w,0.)
    else:
        w=pb.dual.feasible(np.where(pb.dual.linear>0,pb.dual.upper,pb.dual.lower)*1.0) if start=="align" else None
        lin=pb.dual.linear-pb.dual.linear.mean(); lin=lin/abs(lin).max()
        w=pb.dual.feasible(lin*pb.dual.upper.max())
        pt=pb.at(w); K=None
    lam,vec=pt.spectrum
    r0=min(2*add,nP)
    V=vec[:,-r0:]; M=np.diag(np.maximum(lam[-r0:],1e-3*lam[-1])); M*=nP/np.trace(M)
    P=V@M@V.T
    K=ker.gram(P,centred=True,out=K)
    sol=run.svm(K,P,w,svmtol(run)); w=sol.w; f=sol.objective
    pt=run.record(P,w,1.0)
    while True:
        lam,vec=pt.spectrum
        if V.shape[1]>rmax-add:
            ev,Q=np.linalg.eigh(V.T@P@V); V=V@Q[:,-(rmax-2*add):]
        Vn,R=np.linalg.qr(np.hstack([V,vec[:,-add:]])); V=Vn[:,abs(np.diag(R))>1e-9]
        M0=V.T@P@V; r=V.shape[1]; sv=SymmetricVectors(r)
        F=free_samples(pb.dual,w); H=np.zeros((sv.size,sv.size)); 
        D=pt.gradient; G=-0.5*V.T@D@V
        L=None
        if len(F)>1:
            J=sv.to_vector(pt._moments.sensitivities(V,F))
            KF=K[np.ix_(F,F)].astype(float); KF.flat[::len(F)+1]+=1e-11*np.trace(KF)/len(F)
            L=cho_factor(KF,lower=True,overwrite_a=True)
            one=np.ones(len(F)); KJ=cho_solve(L,J); k1=cho_solve(L,one)
            H=J.T@KJ-np.outer(J.T@k1,J.T@k1)/(one@k1); H=.5*(H+H.T)
        H+=1e-10*max(1e-300,np.trace(H)/sv.size)*np.eye(sv.size)
        m0=sv.to_vector(M0)
        Mt=minimise_quadratic(G-sv.to_matrix(H@m0),H,float(nP))
        dm=sv.to_vector(Mt-M0)
        pred=sv.to_vector(G)@dm+.5*dm@H@dm
        P0_,w0_,f0=P,w,f; dP=V@(Mt-M0)@V.T; slope=-.5*np.sum(D*dP)
        t=1.
        dwF=np.zeros_like(w)
        if L is not None:
            q=KJ@dm; dwF[F]=-(q-k1*(np.sum(q)/np.sum(k1)))
        for ls in range(10):
            P=P0_+t*dP; K=ker.gram(V@(M0+t*(Mt-M0))@V.T,centred=True,out=K)
            sol=run.svm(K,P,w0_+t*dwF,svmtol(run)); w=sol.w; f=sol.objective
            pt=run.record(P,w,t)
            st=-.5*np.sum(pt.gradient*dP)
            if f<=f0+1e-4*t*slope: break
            t=t*min(.7,max(.1,slope/(slope-st) if st>slope else .5))
